//! How committed events get out: one pump per client, whatever the transport. It sends each event
//! once and in order, from any cursor, and says when nothing follows (DESIGN 7).

mod pump;

use std::sync::Arc;

use axum::http::HeaderMap;
use schemas::api::{StreamEvent, StreamEventType};
use schemas::id::{SessionId, SessionKey};
use schemas::json::Json;
use schemas::problem::Code;
use schemas::telemetry::metric;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::answer::{Answer, Refused};
use crate::api::sessions;
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::params::Params;

/// Events between the pump and the socket. Small, because an event may hold a large state.
const BUFFER: usize = 32;

/// One event, ready to be sent.
#[derive(Debug, Clone)]
pub struct Frame {
    pub offset: u64,
    pub kind: StreamEventType,
    /// JSON of a [`StreamEvent`], on one line.
    pub json: String,
}

impl Frame {
    pub fn of(event: &StreamEvent) -> Self {
        // Stored JSON may have line breaks between its tokens; within strings they are escaped.
        let json = Json::of(event).as_str().replace(['\r', '\n'], " ");
        Self { offset: event.offset, kind: event.kind, json }
    }

    pub fn name(&self) -> &'static str {
        match self.kind {
            StreamEventType::Step => "step",
            StreamEventType::Created => "created",
            StreamEventType::Status => "status",
            StreamEventType::Action => "action",
            StreamEventType::End => "end",
        }
    }
}

/// One open stream. The pump ends when this is dropped.
pub struct Stream {
    pub frames: mpsc::Receiver<Frame>,
    _open: Open,
}

/// Counts an open stream for as long as it lives.
pub struct Open(#[expect(dead_code, reason = "held for its drop")] OwnedSemaphorePermit);

impl Open {
    pub fn new(streams: &Arc<Semaphore>) -> Answer<Self> {
        let Ok(permit) = streams.clone().try_acquire_owned() else {
            return Err(Refused::new(
                Code::TooManyRequests,
                "Too many streams are open; close some, or try again later.",
            ));
        };
        metrics::gauge!(metric::STREAMS_OPEN).increment(1.0);
        Ok(Self(permit))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        metrics::gauge!(metric::STREAMS_OPEN).decrement(1.0);
    }
}

/// Opens a stream of a session of the caller's namespace, behind the cursor of the request.
pub async fn open(
    gateway: &Gateway,
    caller: &Caller,
    id: SessionId,
    headers: &HeaderMap,
    mut params: Params,
) -> Answer<Stream> {
    let after = cursor(headers, &mut params)?;
    let row = sessions::row(gateway, &caller.namespace, id).await?;
    let open = Open::new(&gateway.streams)?;
    let (sender, frames) = mpsc::channel(BUFFER);
    tokio::spawn(pump::run(gateway.clone(), SessionKey::clone(&row.key), after, sender));
    Ok(Stream { frames, _open: open })
}

/// A reconnecting browser sends `Last-Event-ID`, which is newer than the address it repeats.
pub fn cursor(headers: &HeaderMap, params: &mut Params) -> Answer<u64> {
    // The guard has taken it already.
    params.text("token");
    let after = params.whole("after", 0, i64::MAX as u64);
    params.finish()?;
    let Some(value) = headers.get("last-event-id") else { return Ok(after.unwrap_or(0)) };
    let offset = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    offset.ok_or_else(|| Refused::field("Last-Event-ID", "must be the id of an event: a whole number"))
}
