//! One attempt at a call over the network.

use bytes::Bytes;
use domain::chat::{ChatReply, ChatRequest};
use reqwest::Response;
use reqwest::header::CONTENT_TYPE;
use schemas::limits::{MODEL_ANSWER_BYTES_MAX, MODEL_REQUEST_BYTES_MAX};

use super::emission::Emission;
use crate::call::{CallError, Class};
use crate::config::Endpoint;
use crate::exchange;
use crate::model::{self, Reading, Wire};
use crate::net::{Net, body};
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
        let written = serde_json::to_vec(&wire.body);
        let written = written.map_err(|error| CallError::new(Class::Invalid, error.to_string()).not_sent())?;
        let body = Bytes::from(written);
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
    let reply = answer(net, endpoint, prepared, &mut emission).await.map_err(|error| exchange::hide(error, endpoint));
    match &reply {
        Ok(_) => emission.complete(),
        Err(error) => emission.fail(error),
    }
    reply
}

async fn answer(
    net: &Net,
    endpoint: &Endpoint,
    prepared: &Prepared,
    emission: &mut Emission<'_>,
) -> Result<ChatReply, CallError> {
    let response = exchange::send(net, endpoint, &prepared.wire, prepared.body.clone()).await?;
    let status = response.status().as_u16();
    let request_id = exchange::request_id(response.headers());
    if !(200..300).contains(&status) {
        let error = exchange::refused(endpoint, status, response).await;
        return Err(CallError { request_id, ..error });
    }
    let reading = Reading { call_id: &prepared.call_id, original: endpoint.is_original() };
    // A server that cannot stream may answer whole, and says so.
    let kind = exchange::header(response.headers(), &[CONTENT_TYPE.as_str()]).unwrap_or_default();
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

async fn read_whole(endpoint: &Endpoint, reading: Reading<'_>, response: Response) -> Result<ChatReply, CallError> {
    model::reply(endpoint.vendor, reading, exchange::json(endpoint, response).await?)
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
        let Some(chunk) = body::next(&mut bytes, place).await? else { break };
        size += chunk.len();
        if size > MODEL_ANSWER_BYTES_MAX {
            return Err(too_large());
        }
        reader.feed(&chunk, &mut events).map_err(|sse::TooLarge| too_large())?;
        for mut event in events.drain(..) {
            event.data = exchange::without_key(endpoint, event.data);
            let read = reply.event(&event, &mut deltas);
            deltas.drain(..).for_each(|delta| emission.tell(delta));
            read?;
        }
    }
    if reply.is_complete() {
        body::drain(bytes);
    }
    reply.finish()
}
