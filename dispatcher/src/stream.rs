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
use tokio_util::sync::CancellationToken;

use crate::answer::{Answer, Refused};
use crate::api::sessions;
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::params::{self, Params};

/// Events between the pump and the socket. Small, because an event may hold a large state.
const BUFFER: usize = 32;
/// Stores count in `i64`; and what follows a cursor must have a number.
const CURSOR_MAX: u64 = i64::MAX as u64;

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
            StreamEventType::ProviderCall => "provider_call",
            StreamEventType::End => "end",
        }
    }
}

/// One open stream, whatever it sends and over whatever transport. It ends with the token it was opened
/// with; its pump ends when this is dropped.
pub struct Stream<T> {
    sent: mpsc::Receiver<T>,
    revoked: CancellationToken,
    _open: Open,
}

impl<T> Stream<T> {
    /// A stream of the caller's, and the end of it that its pump sends to.
    pub fn begin(gateway: &Gateway, caller: &Caller, buffer: usize) -> Answer<(mpsc::Sender<T>, Self)> {
        let open = Open::new(&gateway.streams)?;
        let (sender, sent) = mpsc::channel(buffer);
        Ok((sender, Self { sent, revoked: caller.revoked.clone(), _open: open }))
    }

    /// What to send next. `None`: nothing follows, or the token was revoked; what is buffered is then
    /// not for its bearer any more.
    pub async fn next(&mut self) -> Option<T> {
        self.revoked.run_until_cancelled(self.sent.recv()).await.flatten()
    }

    pub fn is_revoked(&self) -> bool {
        self.revoked.is_cancelled()
    }
}

/// Counts an open stream for as long as it lives.
struct Open(#[expect(dead_code, reason = "held for its drop")] OwnedSemaphorePermit);

impl Open {
    fn new(streams: &Arc<Semaphore>) -> Answer<Self> {
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
) -> Answer<Stream<Frame>> {
    let after = cursor(headers, &mut params)?;
    let row = sessions::row(gateway, &caller.namespace, id).await?;
    let (sender, stream) = Stream::begin(gateway, caller, BUFFER)?;
    tokio::spawn(pump::run(gateway.clone(), SessionKey::clone(&row.key), after, sender));
    Ok(stream)
}

/// A reconnecting browser sends `Last-Event-ID`, which is newer than the address it repeats.
pub fn cursor(headers: &HeaderMap, params: &mut Params) -> Answer<u64> {
    // The guard has taken it already.
    params.text("token");
    let after = params.whole("after", 0, CURSOR_MAX);
    params.finish()?;
    let Some(value) = headers.get("last-event-id") else { return Ok(after.unwrap_or(0)) };
    // What is no text is no number either.
    let text = value.to_str().unwrap_or_default().trim();
    params::whole(text, 0, CURSOR_MAX).map_err(|wrong| Refused::field("Last-Event-ID", wrong))
}
