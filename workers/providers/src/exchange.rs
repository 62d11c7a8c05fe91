//! One exchange with a configured endpoint: the request goes out with its key, what comes back is read
//! within bounds, and no text that leaves this module tells the key.

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{RequestBuilder, Response};
use schemas::json::is_too_deep;
use schemas::limits::MODEL_ANSWER_BYTES_MAX;
use serde_json::Value;

use crate::call::{CallError, Class};
use crate::clock;
use crate::config::{Endpoint, Secret};
use crate::model::{Wire, failure};
use crate::net::{self, Net, body};

/// Of an error answer, this much is looked at.
const ERROR_BYTES_MAX: usize = 1 << 20;

/// Sends a body of JSON that is written already.
pub async fn send(net: &Net, endpoint: &Endpoint, wire: &Wire, body: Bytes) -> Result<Response, CallError> {
    let mut call = net.models.post(&wire.url).header(CONTENT_TYPE, "application/json").body(body);
    for (name, value) in &wire.headers {
        call = call.header(*name, value);
    }
    answered(call, endpoint, wire.key_header).await
}

/// Reads what a server that speaks OpenAI's protocol has at `path`.
pub async fn get(net: &Net, endpoint: &Endpoint, path: &str) -> Result<Response, CallError> {
    let call = net.models.get(format!("{}{path}", endpoint.base_url));
    answered(call, endpoint, ("authorization", "Bearer ")).await
}

/// The request goes out with the key: the name of its header, and what is before it there.
async fn answered(
    call: RequestBuilder,
    endpoint: &Endpoint,
    (header, before): (&'static str, &'static str),
) -> Result<Response, CallError> {
    let call = match &endpoint.key {
        Some(key) => call.header(header, secret_header(before, key)?),
        None => call,
    };
    call.send().await.map_err(|error| net::classify(error, endpoint.vendor.as_str()))
}

/// An answer with an error status. Its body is worth reading, but not worth failing for.
pub async fn refused(endpoint: &Endpoint, status: u16, response: Response) -> CallError {
    let place = endpoint.vendor.as_str();
    let asked = net::retry_after_ms(response.headers(), clock::now_ms());
    let again = header(response.headers(), &["x-should-retry"]).and_then(|text| text.parse::<bool>().ok());
    let body = body::read_up_to(response, ERROR_BYTES_MAX, place).await.map(|(body, _)| body).unwrap_or_default();
    // Before anything is shortened: half a key is a secret, too.
    let text = without_key(endpoint, String::from_utf8_lossy(&body).into_owned());
    let parsed: Option<Value> = serde_json::from_str(&text).ok();
    let error = failure::of_answer(endpoint.vendor, status, parsed.as_ref(), text.as_bytes());
    // Headers know better than words.
    let asked = asked.or(error.retry_after_ms);
    failure::of_key(CallError { again, ..error }.retry_after(asked), endpoint)
}

/// An answer that came whole.
pub async fn json(endpoint: &Endpoint, response: Response) -> Result<Value, CallError> {
    let place = endpoint.vendor.as_str();
    let body = body::read(response, MODEL_ANSWER_BYTES_MAX, place).await?;
    let text = without_key(endpoint, String::from_utf8_lossy(&body).into_owned());
    let answer: Value = serde_json::from_str(&text).map_err(|error| unreadable(place, &error, text.as_bytes()))?;
    if is_too_deep(&answer) {
        return Err(CallError::new(Class::Unknown, format!("{place}: the answer is nested too deep to be kept")));
    }
    Ok(answer)
}

/// An answer that ends in the middle is a broken transfer, other nonsense is not worth a repeat.
fn unreadable(place: &str, error: &serde_json::Error, body: &[u8]) -> CallError {
    let class = if error.is_eof() { Class::Cut } else { Class::Unknown };
    let begins = body::beginning(body);
    CallError::new(class, format!("{place}: the answer is not JSON ({error}); it begins with {begins:?}"))
}

/// The provider's id of the request.
pub fn request_id(headers: &HeaderMap) -> Option<String> {
    header(headers, &["request-id", "x-request-id", "x-goog-request-id"])
}

/// The first of these headers that is there and not blank.
pub fn header(headers: &HeaderMap, names: &[&str]) -> Option<String> {
    let text = names.iter().find_map(|name| headers.get(*name)?.to_str().ok());
    text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn secret_header(before: &str, key: &Secret) -> Result<HeaderValue, CallError> {
    let mut value = HeaderValue::from_str(&format!("{before}{}", key.expose()))
        .map_err(|_| CallError::new(Class::Auth, "the key holds characters that no header may have").not_sent())?;
    value.set_sensitive(true);
    Ok(value)
}

/// Vendors like to repeat the key they refuse.
pub fn without_key(endpoint: &Endpoint, text: String) -> String {
    match &endpoint.key {
        Some(key) if text.contains(key.expose()) => key.redact(&text),
        _ => text,
    }
}

/// Whatever says it: no error tells the key.
pub fn hide(error: CallError, endpoint: &Endpoint) -> CallError {
    match &endpoint.key {
        Some(key) => CallError {
            message: key.redact(&error.message),
            word: error.word.as_deref().map(|word| key.redact(word)),
            request_id: error.request_id.as_deref().map(|id| key.redact(id)),
            ..error
        },
        None => error,
    }
}
