//! WebSocket `/conversations/{id}`: the frames of the stream as JSON texts, and messages the other way.

use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::get;
use domain::conversation::stream::ephemeral;
use domain::ports::Scope;
use schemas::conversation::{AnswerFrame, FrameBody};
use schemas::id::{ConversationId, TurnId};
use schemas::limits::{ACTION_BYTES_MAX, STREAM_HEARTBEAT_MS};
use schemas::problem::Code;
use serde_json::Value;
use tokio::time::{Instant, MissedTickBehavior};

use crate::answer::{Answer, Refused};
use crate::api::events::CURSOR_PARAMS;
use crate::api::socket::{PROTOCOL, close, send};
use crate::api::turns;
use crate::caller::Caller;
use crate::extract::PathId;
use crate::follow::{self, Line};
use crate::gateway::Gateway;
use crate::params::Params;
use crate::routes::Route;
use crate::stream::Stream;
use crate::talk;

/// Longest `id` of what a client sends.
const REQUEST_ID_CHARS_MAX: usize = 128;

pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/conversations/{id}", get(upgrade))
            .stream()
            .summary(
                "WebSocket. Each text frame of the server is a ConversationFrame, each of the client a ClientFrame, \
                 which needs scope act and is answered by a frame of type answer. After `end` the server closes with \
                 1000, with 1008 when the token was revoked, otherwise with 1013: connect again with the last offset. \
                 The token may come as the subprotocols `stepfleet, bearer.<token>`.",
            )
            .query(CURSOR_PARAMS)
            .answers(101, "ConversationFrame")
            .refuses(&[Code::InvalidRequest, Code::ConversationNotFound, Code::TooManyRequests]),
    ]
}

async fn upgrade(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathId(id): PathId<ConversationId>,
    headers: HeaderMap,
    params: Params,
    socket: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Answer<Response> {
    let socket = socket.map_err(|_| {
        let detail = "This address speaks WebSocket. For plain HTTP use GET /api/conversations/{id}/events.";
        Refused::new(Code::InvalidRequest, detail)
    })?;
    let followed = follow::open(&gateway, &caller, id.clone(), &headers, params).await?;
    let socket = socket.protocols([PROTOCOL]).max_message_size(ACTION_BYTES_MAX);
    let client = Client { gateway, caller, id };
    Ok(socket.on_upgrade(move |socket| relay(socket, followed, client)))
}

/// Sends frames until the end, and answers the client in between.
async fn relay(mut socket: WebSocket, mut followed: Stream<Line>, client: Client) {
    let heartbeat = Duration::from_millis(STREAM_HEARTBEAT_MS);
    let mut alive = tokio::time::interval_at(Instant::now() + heartbeat, heartbeat);
    alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut ended = false;
    loop {
        let message = tokio::select! {
            line = followed.next() => match line {
                Some(line) => {
                    ended = line.is_end;
                    Message::Text(line.json.into())
                }
                None => {
                    close(&mut socket, ended.then_some("the conversation is closed"), followed.is_revoked()).await;
                    return;
                }
            },
            heard = socket.recv() => match heard {
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(Message::Text(text))) => Message::Text(client.answer(&text).await.into()),
                Some(Ok(_)) => continue,
            },
            _ = alive.tick() => Message::Ping(Default::default()),
        };
        if !send(&mut socket, message).await {
            return;
        }
    }
}

/// Who speaks over the socket, and where.
struct Client {
    gateway: Gateway,
    caller: Caller,
    id: ConversationId,
}

impl Client {
    /// The frame that answers what the client sent.
    async fn answer(&self, text: &str) -> String {
        let mut answer = AnswerFrame { id: None, posted: None, cancelled: None, problem: None };
        if let Err(refused) = self.handle(text, &mut answer).await {
            answer.problem = Some(*refused.0);
        }
        Line::of(&ephemeral(&self.id, FrameBody::Answer(answer))).json
    }

    async fn handle(&self, text: &str, answer: &mut AnswerFrame) -> Answer<()> {
        let wrong = |error| Refused::new(Code::InvalidJson, format!("The frame is not well-formed JSON: {error}."));
        let mut body: Value = serde_json::from_str(text).map_err(wrong)?;
        let Some(map) = body.as_object_mut() else {
            return Err(Refused::field(
                "frame",
                "must be an object such as {\"type\": \"message\", \"text\": \"hello\"}",
            ));
        };
        let id = map.remove("id").filter(|id| !id.is_null());
        answer.id = id.as_ref().and_then(Value::as_str).map(|id| id.chars().take(REQUEST_ID_CHARS_MAX).collect());
        if id.is_some_and(|id| id.as_str().is_none_or(|id| id.chars().count() > REQUEST_ID_CHARS_MAX)) {
            return Err(Refused::field("id", format!("must be a string of at most {REQUEST_ID_CHARS_MAX} characters")));
        }
        self.caller.need(Scope::Act)?;
        match map.remove("type").as_ref().and_then(Value::as_str) {
            Some("message") => {
                answer.posted = Some(talk::post(&self.gateway, &self.caller, self.id.clone(), None, &body).await?);
            }
            Some("cancel_turn") => {
                let turn = map.remove("turn_id").as_ref().and_then(Value::as_str).map(TurnId::parse);
                let Some(Ok(turn)) = turn else {
                    return Err(Refused::field("turn_id", "must be the id of the turn to cancel"));
                };
                answer.cancelled = Some(turns::cancel_turn(&self.gateway, &self.caller, &turn, Some(&self.id)).await?);
            }
            _ => return Err(Refused::field("type", "must be message or cancel_turn")),
        }
        Ok(())
    }
}
