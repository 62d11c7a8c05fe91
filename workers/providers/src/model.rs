//! Model adapters, one folder each: `request` translates, `reply` reads an answer that came whole,
//! `stream` puts one together from events. All of it is pure; `chat` sends.

mod anthropic;
pub(crate) mod failure;
mod fold;
mod gemini;
mod json;
mod openai_chat;
mod openai_responses;
mod openai_usage;
mod order;

pub(crate) use json::tool_call;

use domain::chat::{ChatDelta, ChatReply, ChatRequest, extra_header, model_in_address};
use schemas::json::is_too_deep;
use serde_json::Value;

use crate::call::{CallError, Class};
use crate::config::{Endpoint, Vendor};
use crate::sse::Event;

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

/// What a reader of answers needs to know of the call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading<'a> {
    /// Ids that the provider does not give are derived from it.
    pub call_id: &'a str,
    /// The provider's own service, which keeps to its protocol. Other servers may leave out the
    /// end mark of a stream.
    pub original: bool,
}

/// Puts a reply together from events. Sans I/O: it neither waits nor reads.
pub(crate) trait ReplyStream: Send {
    /// # Errors
    /// The provider reports an error, or the events make no sense together. The stream is of no
    /// use then.
    fn event(&mut self, event: &Event, deltas: &mut Vec<ChatDelta>) -> Result<(), CallError>;

    /// The end mark was seen: nothing more needs to be read.
    fn is_complete(&self) -> bool;

    /// The events are over.
    ///
    /// # Errors
    /// The end mark of the protocol was not among them, or the model declined to answer.
    fn finish(self: Box<Self>) -> Result<ChatReply, CallError>;
}

/// Translates. A native request passes as it is, with model and streaming set.
///
/// # Errors
/// The request is not one for this provider.
pub(crate) fn request(endpoint: &Endpoint, request: &ChatRequest, stream: bool) -> Result<Wire, CallError> {
    request.check().map_err(|problem| CallError::new(Class::Invalid, problem).not_sent())?;
    let name = endpoint.vendor.as_str();
    if let Some(native) = request.native.as_ref().filter(|native| native.provider != name) {
        let made_for = &native.provider;
        let message = format!(
            "the request is made for {made_for:?}, but the model profile leads to {name}; choose a profile of \
             {made_for:?}, or write the request for {name}"
        );
        return Err(CallError::new(Class::Invalid, message).not_sent());
    }
    // Whoever named it: a profile may be older than this check, and a template may become anything.
    let model = model_name(endpoint, request);
    model_in_address(name, model)
        .map_err(|why| CallError::new(Class::Invalid, format!("{name}: the model {model:?} {why}")).not_sent())?;
    let extra = extra_headers(request)?;
    let mut wire = match endpoint.vendor {
        Vendor::Anthropic => anthropic::wire(endpoint, request, stream),
        Vendor::Openai => openai_chat::wire(endpoint, request, stream),
        Vendor::OpenaiResponses => openai_responses::wire(endpoint, request, stream),
        Vendor::Gemini => gemini::wire(endpoint, request, stream),
    };
    wire.headers.extend(extra);
    Ok(wire)
}

/// The model that is asked.
fn model_name<'r>(endpoint: &'r Endpoint, request: &'r ChatRequest) -> &'r str {
    request.model.as_deref().unwrap_or(&endpoint.model)
}

/// Held against the list here, too: who wrote them is not known, and a profile may be older than the list.
fn extra_headers(request: &ChatRequest) -> Result<Vec<(&'static str, String)>, CallError> {
    let mut headers = Vec::with_capacity(request.parameters.headers.len());
    for (name, value) in &request.parameters.headers {
        let known = extra_header(name, value).map_err(|why| {
            let message = format!("the header {name} of the model profile {why}");
            CallError::new(Class::Invalid, message).not_sent()
        })?;
        headers.push((known, value.clone()));
    }
    Ok(headers)
}

/// Reads an answer that came whole.
///
/// # Errors
/// The model declined, the provider reports a failure, or the body is no answer.
pub(crate) fn reply(vendor: Vendor, reading: Reading<'_>, body: Value) -> Result<ChatReply, CallError> {
    match vendor {
        Vendor::Anthropic => anthropic::reply::read(body, reading),
        Vendor::Openai => openai_chat::reply::read(body, reading),
        Vendor::OpenaiResponses => openai_responses::reply::read(body, reading),
        Vendor::Gemini => gemini::reply::read(body, reading),
    }
}

/// Starts reading a stream.
pub(crate) fn stream(vendor: Vendor, reading: Reading<'_>) -> Box<dyn ReplyStream> {
    match vendor {
        Vendor::Anthropic => Box::new(anthropic::stream::Stream::new(reading)),
        Vendor::Openai => Box::new(openai_chat::stream::Stream::new(reading)),
        Vendor::OpenaiResponses => Box::new(openai_responses::stream::Stream::new(reading)),
        Vendor::Gemini => Box::new(gemini::stream::Stream::new(reading)),
    }
}

/// A missing part of an answer.
fn lacking(vendor: Vendor, what: &str) -> CallError {
    CallError::new(Class::Unknown, format!("{}: the answer has no {what}", vendor.as_str()))
}

/// The model said nothing but no.
fn declined(vendor: Vendor, why: &str) -> CallError {
    let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
    CallError::new(Class::Safety, format!("{}: the model declined to answer{why}", vendor.as_str()))
}

/// A stream that ended before its end mark.
fn cut(vendor: Vendor) -> CallError {
    CallError::new(Class::Cut, format!("{}: the stream ended before the answer did", vendor.as_str()))
}

/// A stream whose events make no sense: something was lost or garbled on the way.
fn garbled(vendor: Vendor, what: &str) -> CallError {
    CallError::new(Class::Cut, format!("{}: the stream is garbled ({what})", vendor.as_str()))
}

/// The JSON of an event.
fn event_json(vendor: Vendor, event: &Event) -> Result<Value, CallError> {
    let data: Value = serde_json::from_str(&event.data).map_err(|_| garbled(vendor, "an event is no JSON"))?;
    if is_too_deep(&data) { Err(garbled(vendor, "an event is nested too deep")) } else { Ok(data) }
}

#[cfg(test)]
mod tests;
