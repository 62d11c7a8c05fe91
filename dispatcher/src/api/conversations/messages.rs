//! `POST` and `GET /api/conversations/{id}/messages`.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use domain::action::fields::not_one_of;
use domain::conversation::transcript::{self, EVERYTHING, UTTERANCES};
use domain::ports::{LogQuery, Scope};
use schemas::conversation::{EventType, MessagePage, MessageView, PostAnswer};
use schemas::id::ConversationId;
use schemas::limits::{PAGE_BYTES_MAX, PAGE_DEFAULT};
use schemas::problem::Code;

use super::create::KEY_HEADER;
use super::row;
use crate::answer::Answer;
use crate::api::sessions::PAGE_PARAMS;
use crate::api::steps::{Order, read_order, read_time};
use crate::caller::Caller;
use crate::extract::{JsonBody, PathId, idempotency_key};
use crate::gateway::Gateway;
use crate::params::Params;
use crate::routes::Route;
use crate::talk;

/// What a message may be refused with.
const REFUSALS: &[Code] = &[
    Code::InvalidRequest,
    Code::InvalidJson,
    Code::TooLarge,
    Code::ConversationNotFound,
    Code::ConversationClosed,
    Code::MessageConflict,
    Code::AgentBusy,
    Code::SessionEnded,
    Code::TooManyRequests,
    Code::StorageFull,
];

pub fn routes() -> Vec<Route> {
    vec![
        Route::post("/api/conversations/{id}/messages", post(say))
            .scope(Scope::Act)
            .summary(
                "Say something. It starts a turn of each agent that should answer, or is the input of one without \
                 turns; `busy` says what becomes of it at one that is at work. The answer says what happened, agent by \
                 agent.",
            )
            .header(KEY_HEADER.0, KEY_HEADER.1)
            .body("PostBody")
            .answers(202, "PostAnswer")
            .refuses(REFUSALS),
        Route::get("/api/conversations/{id}/messages", get(list))
            .summary("The transcript: utterances in order, or everything.")
            .query(&[
                ("include", "all: tool calls, tool results, summaries and status too"),
                ("order", "asc or desc, by place in the log; asc if absent"),
                ("before", "Messages whose offset is smaller"),
                ("since", "Messages written at or after this time (RFC 3339)"),
            ])
            .query(PAGE_PARAMS)
            .answers(200, "MessagePage")
            .refuses(&[Code::InvalidRequest, Code::ConversationNotFound]),
    ]
}

async fn say(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathId(id): PathId<ConversationId>,
    headers: HeaderMap,
    body: JsonBody,
) -> Answer<(StatusCode, Json<PostAnswer>)> {
    let key = idempotency_key(&headers)?;
    let answer = talk::post(&gateway, &caller, id, key, &body.required()?).await?;
    Ok((StatusCode::ACCEPTED, Json(answer)))
}

async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathId(id): PathId<ConversationId>,
    mut params: Params,
) -> Answer<Json<MessagePage>> {
    let everything = params.read("include", read_include).is_some();
    let descending = params.read("order", read_order) == Some(Order::Descending);
    let cursor = params.whole("cursor", 0, i64::MAX as u64);
    let before = params.whole("before", 0, i64::MAX as u64);
    let since_ms = params.read("since", read_time);
    let limit = params.limit(PAGE_DEFAULT);
    params.finish()?;
    row(&gateway, &caller.namespace, &id).await?;
    let (after, before) = match descending {
        true => (0, [before, cursor].into_iter().flatten().min()),
        false => (cursor.unwrap_or(0), before),
    };
    let query = LogQuery {
        namespace: caller.namespace,
        conversation_id: id,
        kinds: if everything { EVERYTHING } else { UTTERANCES }.to_vec(),
        turn_id: None,
        after,
        before,
        since_ms,
        descending,
        limit,
        bytes: PAGE_BYTES_MAX,
    };
    let rows = gateway.conversations.log(&query).await?;
    // A page may end early for its bytes: whether another follows is known by looking.
    let more = match rows.last() {
        None => false,
        Some(last) => {
            let (after, before) = if descending { (after, Some(last.offset)) } else { (last.offset, before) };
            !gateway.conversations.log(&LogQuery { after, before, limit: 1, ..query }).await?.is_empty()
        }
    };
    let next_cursor = rows.last().filter(|_| more).map(|row| row.offset.to_string());
    let is_shown = |view: &MessageView| everything || view.message.event_type == EventType::Utterance;
    let items = rows.iter().filter_map(transcript::message_view).filter(is_shown).collect();
    Ok(Json(MessagePage { items, next_cursor }))
}

fn read_include(text: &str) -> Result<(), String> {
    if text == "all" { Ok(()) } else { Err(not_one_of(text, &["all"])) }
}
