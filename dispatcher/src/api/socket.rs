//! WebSocket `/sessions/{id}`: the frames of the event stream as JSON texts.

use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::get;
use schemas::api::StreamEventType;
use schemas::id::SessionId;
use schemas::limits::{STREAM_HEARTBEAT_MS, STREAM_STALL_MS};
use schemas::problem::Code;
use tokio::time::{Instant, MissedTickBehavior};

use super::events::CURSOR_PARAMS;
use crate::answer::{Answer, Refused};
use crate::caller::Caller;
use crate::extract::PathId;
use crate::gateway::Gateway;
use crate::params::Params;
use crate::routes::Route;
use crate::stream::{self, Frame, Stream};

/// The subprotocol we speak; the other one a client may offer carries its token.
pub const PROTOCOL: &str = "stepfleet";
/// Clients have nothing to say here but pings.
const MESSAGE_BYTES_MAX: usize = 4_096;
/// How long a client may take to answer a close frame.
const GOODBYE: Duration = Duration::from_secs(5);

pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/sessions/{id}", get(upgrade))
            .stream()
            .summary(
                "WebSocket. Each text frame is a StreamEvent; after `end` the server closes with 1000, with 1008 when \
                 the token was revoked, otherwise with 1013: connect again with the last offset. The token may come \
                 as the subprotocols `stepfleet, bearer.<token>`.",
            )
            .query(CURSOR_PARAMS)
            .answers(101, "StreamEvent")
            .refuses(&[Code::InvalidRequest, Code::SessionNotFound, Code::TooManyRequests]),
    ]
}

async fn upgrade(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathId(id): PathId<SessionId>,
    headers: HeaderMap,
    params: Params,
    socket: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Answer<Response> {
    let socket = socket.map_err(|_| {
        let detail = "This address speaks WebSocket. For plain HTTP use GET /api/sessions/{id}/events.";
        Refused::new(Code::InvalidRequest, detail)
    })?;
    let stream = stream::open(&gateway, &caller, id, &headers, params).await?;
    let socket = socket.protocols([PROTOCOL]).max_message_size(MESSAGE_BYTES_MAX);
    Ok(socket.on_upgrade(move |socket| relay(socket, stream)))
}

/// Sends frames until the end, and answers the client's pings in between.
async fn relay(mut socket: WebSocket, mut stream: Stream<Frame>) {
    let heartbeat = Duration::from_millis(STREAM_HEARTBEAT_MS);
    let mut alive = tokio::time::interval_at(Instant::now() + heartbeat, heartbeat);
    alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut ended = false;
    loop {
        let message = tokio::select! {
            frame = stream.next() => match frame {
                Some(frame) => {
                    ended = frame.kind == StreamEventType::End;
                    Message::Text(frame.json.into())
                }
                None => {
                    close(&mut socket, ended.then_some("the session has ended"), stream.is_revoked()).await;
                    return;
                }
            },
            heard = socket.recv() => match heard {
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => continue,
            },
            _ = alive.tick() => Message::Ping(Default::default()),
        };
        if !send(&mut socket, message).await {
            return;
        }
    }
}

/// Says goodbye and hears the client out: data left unread would reset the connection, and with it
/// frames that are still on their way. `end`: why nothing will ever follow.
pub async fn close(socket: &mut WebSocket, end: Option<&'static str>, revoked: bool) {
    let (code, reason) = match end {
        Some(why) => (close_code::NORMAL, why),
        None if revoked => (close_code::POLICY, "the token was revoked or changed"),
        None => (close_code::AGAIN, "connect again with the last offset"),
    };
    if send(socket, Message::Close(Some(CloseFrame { code, reason: reason.into() }))).await {
        let goodbye = async { while let Some(Ok(_)) = socket.recv().await {} };
        // A client that does not answer is cut off.
        let _ = tokio::time::timeout(GOODBYE, goodbye).await;
    }
}

/// Whether the client took it in time.
pub async fn send(socket: &mut WebSocket, message: Message) -> bool {
    let patience = Duration::from_millis(STREAM_STALL_MS);
    matches!(tokio::time::timeout(patience, socket.send(message)).await, Ok(Ok(())))
}
