//! One attempt at a call over the network.

use bytes::Bytes;
use domain::chat::{ChatReply, ChatRequest};
use futures::StreamExt;
use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use schemas::limits::{MODEL_ANSWER_BYTES_MAX, MODEL_REQUEST_BYTES_MAX};
use serde_json::Value;

use super::emission::Emission;
use crate::call::{CallError, Class};
use crate::clock;
use crate::config::{Endpoint, Secret};
use crate::model::{self, Reading, Wire, failure};
use crate::net::{self, Net, body};
use crate::sse;

/// A request that is translated and written once, for all attempts.
pub(super) struct Prepared {
    wire: Wire,
    body: Bytes,
    stream: bool,
    call_id: String,
}

impl Prepared {
    /// # Errors
    /// The request is not one that this provider could take.
    pub fn new(endpoint: &Endpoint, request: &ChatRequest, call_id: &str, stream: bool) -> Result<Self, CallError> {
        let wire = model::request(endpoint, request, stream)?;
        let body = Bytes::from(wire.body.to_string());
        if body.len() > MODEL_REQUEST_BYTES_MAX {
            let message = format!(
                "the request has {} bytes and a model takes at most {MODEL_REQUEST_BYTES_MAX}; send less history or \
                 smaller images",
                body.len()
            );
            return Err(CallError::new(Class::Invalid, message).not_sent());
        }
        Ok(Self { wire, body, stream, call_id: call_id.to_owned() })
    }
}

/// # Errors
/// Why there is no reply; the key is in no message.
pub(super) async fn make(
    net: &Net,
    endpoint: &Endpoint,
    prepared: &Prepared,
    mut emission: Emission<'_>,
) -> Result<ChatReply, CallError> {
    let reply = answer(net, endpoint, prepared, &mut emission).await.map_err(|error| hide(error, endpoint))?;
    emission.complete();
    Ok(reply)
}

async fn answer(
    net: &Net,
    endpoint: &Endpoint,
    prepared: &Prepared,
    emission: &mut Emission<'_>,
) -> Result<ChatReply, CallError> {
    let response = send(net, endpoint, prepared).await?;
    let status = response.status().as_u16();
    let request_id = header(response.headers(), &["request-id", "x-request-id", "x-goog-request-id"]);
    if !(200..300).contains(&status) {
        let error = refused(endpoint, status, response).await;
        return Err(CallError { request_id, ..error });
    }
    let reading = Reading { call_id: &prepared.call_id, original: endpoint.is_original() };
    // A server that cannot stream may answer whole, and says so.
    let kind = header(response.headers(), &[CONTENT_TYPE.as_str()]).unwrap_or_default();
    let whole = kind.to_ascii_lowercase().contains("json");
    let reply = if prepared.stream && !whole {
        read_stream(endpoint, reading, response, emission).await
    } else {
        read_whole(endpoint, reading, response).await.inspect(|reply| emission.tell_all(reply))
    };
    match reply {
        Ok(reply) => Ok(ChatReply { request_id, ..reply }),
        Err(error) => Err(CallError { status: Some(status), request_id, ..error }),
    }
}

async fn send(net: &Net, endpoint: &Endpoint, prepared: &Prepared) -> Result<Response, CallError> {
    let wire = &prepared.wire;
    let mut call = net.models.post(&wire.url).header(CONTENT_TYPE, "application/json").body(prepared.body.clone());
    for (name, value) in &wire.headers {
        call = call.header(*name, value);
    }
    if let Some(key) = &endpoint.key {
        call = call.header(wire.key_header.0, secret_header(wire.key_header.1, key)?);
    }
    call.send().await.map_err(|error| net::classify(error, endpoint.vendor.as_str()))
}

/// An answer with an error status. Its body is worth reading, but not worth failing for.
async fn refused(endpoint: &Endpoint, status: u16, response: Response) -> CallError {
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
    CallError { again, ..error }.retry_after(asked)
}

/// Of an error answer, this much is looked at.
const ERROR_BYTES_MAX: usize = 1 << 20;

async fn read_whole(endpoint: &Endpoint, reading: Reading<'_>, response: Response) -> Result<ChatReply, CallError> {
    let place = endpoint.vendor.as_str();
    let body = body::read(response, MODEL_ANSWER_BYTES_MAX, place).await?;
    let text = without_key(endpoint, String::from_utf8_lossy(&body).into_owned());
    let value: Value = serde_json::from_str(&text).map_err(|error| unreadable(place, &error, text.as_bytes()))?;
    model::reply(endpoint.vendor, reading, value)
}

/// An answer that ends in the middle is a broken transfer, other nonsense is not worth a repeat.
fn unreadable(place: &str, error: &serde_json::Error, body: &[u8]) -> CallError {
    let class = if error.is_eof() { Class::Cut } else { Class::Unknown };
    let begins = body::beginning(body);
    CallError::new(class, format!("{place}: the answer is not JSON ({error}); it begins with {begins:?}"))
}

/// Reads events until the end mark, telling each piece as soon as it is here.
async fn read_stream(
    endpoint: &Endpoint,
    reading: Reading<'_>,
    response: Response,
    emission: &mut Emission<'_>,
) -> Result<ChatReply, CallError> {
    let place = endpoint.vendor.as_str();
    let too_large = || CallError::new(Class::Unknown, format!("{place}: the stream is larger than any answer may be"));
    let mut bytes = response.bytes_stream();
    let (mut reader, mut reply) = (sse::Reader::default(), model::stream(endpoint.vendor, reading));
    let (mut events, mut deltas, mut size) = (Vec::new(), Vec::new(), 0);
    while !reply.is_complete() {
        let Some(chunk) = bytes.next().await else { break };
        let chunk = chunk.map_err(|error| body::as_cut(net::classify(error, place)))?;
        size += chunk.len();
        if size > MODEL_ANSWER_BYTES_MAX {
            return Err(too_large());
        }
        reader.feed(&chunk, &mut events).map_err(|sse::TooLarge| too_large())?;
        for mut event in events.drain(..) {
            event.data = without_key(endpoint, event.data);
            let read = reply.event(&event, &mut deltas);
            deltas.drain(..).for_each(|delta| emission.tell(delta));
            read?;
        }
    }
    reply.finish()
}

fn header(headers: &HeaderMap, names: &[&str]) -> Option<String> {
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
fn without_key(endpoint: &Endpoint, text: String) -> String {
    match &endpoint.key {
        Some(key) if text.contains(key.expose()) => key.redact(&text),
        _ => text,
    }
}

/// Whatever says it: no error tells the key.
fn hide(error: CallError, endpoint: &Endpoint) -> CallError {
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
