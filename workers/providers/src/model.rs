//! Model adapters. Each vendor's file has a pure request builder, answer parser and error
//! classifier; this one sends, and reports in one shape.

mod anthropic;
mod failure;
mod gemini;
mod openai;

use domain::effect::ModelRequest;
use domain::retry::MODEL;
use serde_json::{Value, json};

use crate::attempts;
use crate::call::{CallError, Class};
use crate::config::{Endpoint, Secret, Vendor};
use crate::net::{self, Net, body};

/// Largest answer of a model API.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// A request ready to be sent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wire {
    pub url: String,
    /// Without the key, so that a wire may be shown.
    pub headers: Vec<(&'static str, String)>,
    /// Name of the header that carries the key, and what stands before it.
    pub key_header: (&'static str, &'static str),
    pub body: Value,
}

/// Why a model stopped (SPEC K-36).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finish {
    Stop,
    ToolCalls,
    Length,
    ContentFilter,
    Other,
}

impl Finish {
    fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::ToolCalls => "tool_calls",
            Self::Length => "length",
            Self::ContentFilter => "content_filter",
            Self::Other => "other",
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub input_tokens: u64,
    pub output_tokens: u64,
}

/// A model's answer, in one shape for all vendors.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub text: String,
    pub model: String,
    pub finish: Finish,
    pub usage: Usage,
    /// `{id, name, arguments}` each.
    pub tool_calls: Vec<Value>,
}

impl Answer {
    /// The outcome value of `Effect::Model`.
    pub fn outcome(self, provider: &str) -> Value {
        let mut value = json!({
            "text": self.text,
            "provider": provider,
            "model": self.model,
            "finish": self.finish.as_str(),
            "usage": {
                "input_tokens": self.usage.input_tokens,
                "output_tokens": self.usage.output_tokens,
                "total_tokens": self.usage.input_tokens + self.usage.output_tokens,
            },
        });
        if !self.tool_calls.is_empty() {
            value["tool_calls"] = self.tool_calls.into();
        }
        value
    }
}

/// Asks a model, with the platform's attempts (SPEC K-12).
///
/// # Errors
/// The last failure and how many attempts were made.
pub(crate) async fn ask(net: &Net, endpoint: &Endpoint, request: &ModelRequest) -> Result<Answer, (CallError, u32)> {
    let wire = match endpoint.vendor {
        Vendor::Anthropic => anthropic::request(endpoint, request),
        Vendor::Openai => openai::request(endpoint, request),
        Vendor::Gemini => gemini::request(endpoint, request),
    };
    attempts::run(MODEL, |_| true, || send(net, endpoint, &wire)).await
}

async fn send(net: &Net, endpoint: &Endpoint, wire: &Wire) -> Result<Answer, CallError> {
    let place = endpoint.vendor.as_str();
    let mut call = net.models.post(&wire.url).json(&wire.body);
    for (name, value) in &wire.headers {
        call = call.header(*name, value);
    }
    if let Some(key) = &endpoint.key {
        call = call.header(wire.key_header.0, secret_header(wire.key_header.1, key)?);
    }
    let response = call.send().await.map_err(|error| hide(net::classify(error, place), endpoint))?;
    let status = response.status().as_u16();
    let retry_after_ms = net::retry_after_ms(response.headers());
    let body = body::read(response, ANSWER_BYTES_MAX, place).await?;
    let parsed: Result<Value, _> = serde_json::from_slice(&body);
    if !(200..300).contains(&status) {
        let error = failure::classify(endpoint.vendor, status, parsed.ok().as_ref(), &body);
        let asked = retry_after_ms.or(error.retry_after_ms);
        return Err(hide(error.retry_after(asked), endpoint));
    }
    let value = parsed.map_err(|error| unreadable(place, &error, &body))?;
    let answer = match endpoint.vendor {
        Vendor::Anthropic => anthropic::answer(&value),
        Vendor::Openai => openai::answer(&value),
        Vendor::Gemini => gemini::answer(&value),
    };
    answer.map_err(|error| hide(error, endpoint))
}

/// An answer that ends in the middle is a broken transfer, other nonsense is not worth a repeat.
fn unreadable(place: &str, error: &serde_json::Error, body: &[u8]) -> CallError {
    let class = if error.is_eof() { Class::Cut } else { Class::Invalid };
    CallError::new(
        class,
        format!("{place}: the answer is not JSON ({error}); it begins with {:?}", body::beginning(body)),
    )
}

fn secret_header(before: &str, key: &Secret) -> Result<reqwest::header::HeaderValue, CallError> {
    let mut value = reqwest::header::HeaderValue::from_str(&format!("{before}{}", key.expose()))
        .map_err(|_| CallError::new(Class::Auth, "the key holds characters that no header may have").not_sent())?;
    value.set_sensitive(true);
    Ok(value)
}

/// Vendors like to repeat the key they refuse.
fn hide(error: CallError, endpoint: &Endpoint) -> CallError {
    match &endpoint.key {
        Some(key) => CallError { message: key.redact(&error.message), ..error },
        None => error,
    }
}

/// Tokens to ask for: what the step wants, within the profile's bound.
fn max_tokens(endpoint: &Endpoint, request: &ModelRequest) -> u32 {
    endpoint.max_tokens.map_or(request.max_tokens, |max| max.min(request.max_tokens))
}

/// A missing part of an answer.
fn lacking(vendor: Vendor, what: &str) -> CallError {
    CallError::new(Class::Invalid, format!("{}: the answer has no {what}", vendor.as_str()))
}

#[cfg(test)]
mod tests;
