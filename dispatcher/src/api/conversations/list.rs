//! `GET /api/conversations`.

use std::collections::HashMap;

use axum::Json;
use axum::extract::State;
use axum::routing::get;
use domain::action::fields::not_one_of;
use domain::conversation::view;
use domain::ports::ConversationQuery;
use schemas::conversation::{Conversation, ConversationPage, ConversationStatus, Turn};
use schemas::id::ConversationId;
use schemas::limits::PAGE_DEFAULT;
use schemas::problem::Code;

use crate::answer::Answer;
use crate::api::sessions::PAGE_PARAMS;
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::params::Params;
use crate::routes::Route;

/// Those that are stored.
const STATUSES: [&str; 3] = ["active", "completed", "failed"];

pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/conversations", get(list))
            .summary(
                "Conversations, newest first, with the status that they have now. All given conditions must hold; \
                 those that wait are among the active ones.",
            )
            .query(&[
                ("status", "active (those that wait, too), completed or failed"),
                ("agent_id", "This agent takes part, or did"),
                ("user_id", "This user takes part, or did"),
                ("created_by", "Created by this user"),
                ("subject_id", "About this subject"),
                ("tag", "Has this tag"),
                ("include", "internal: those of delegated work too"),
            ])
            .query(PAGE_PARAMS)
            .answers(200, "ConversationPage")
            .refuses(&[Code::InvalidRequest]),
    ]
}

async fn list(State(gateway): State<Gateway>, caller: Caller, mut params: Params) -> Answer<Json<ConversationPage>> {
    let limit = params.limit(PAGE_DEFAULT);
    let query = ConversationQuery {
        namespace: caller.namespace,
        status: params.read("status", read_status),
        created_by: params.text("created_by"),
        subject_id: params.text("subject_id"),
        tag: params.text("tag"),
        agent_id: params.parsed("agent_id"),
        user_id: params.parsed("user_id"),
        include_internal: params.read("include", read_include).is_some(),
        after: params.read("cursor", |text| read_cursor(text, ConversationId::parse)),
        // One more, to know whether another page follows.
        limit: limit + 1,
    };
    params.finish()?;
    let mut rows = gateway.conversations.list(&query).await?;
    let more = rows.len() > limit;
    rows.truncate(limit);
    let last = rows.last().filter(|_| more);
    let next_cursor = last.map(|row| format!("{}~{}", row.created_at_ms, row.conversation_id));
    let open = rows.iter().filter(|row| row.status == ConversationStatus::Active);
    let open: Vec<ConversationId> = open.map(|row| row.conversation_id.clone()).collect();
    let mut turns: HashMap<ConversationId, Vec<Turn>> = HashMap::new();
    if !open.is_empty() {
        for turn in gateway.conversations.open_turns(&query.namespace, &open).await? {
            turns.entry(turn.conversation_id.clone()).or_default().push(turn);
        }
    }
    let active = |row: &Conversation| turns.get(&row.conversation_id).map_or(&[][..], Vec::as_slice);
    let items = rows.iter().map(|row| view::conversation(row, active(row))).collect();
    Ok(Json(ConversationPage { items, next_cursor }))
}

fn read_status(text: &str) -> Result<ConversationStatus, String> {
    match ConversationStatus::parse(text) {
        Some(ConversationStatus::Waiting) => {
            let why = "waiting is not stored: it is what active ones are told as while their turns wait";
            Err(format!("{why}. Ask for one of {}", STATUSES.join(", ")))
        }
        Some(status) => Ok(status),
        None => Err(not_one_of(text, &STATUSES)),
    }
}

fn read_include(text: &str) -> Result<(), String> {
    if text == "internal" { Ok(()) } else { Err(not_one_of(text, &["internal"])) }
}

/// A place in a list that is ordered by time and id.
pub fn read_cursor<T, E>(text: &str, id: impl Fn(&str) -> Result<T, E>) -> Result<(i64, T), String> {
    let parsed = text.split_once('~').and_then(|(at, rest)| Some((at.parse().ok()?, id(rest).ok()?)));
    parsed.ok_or_else(|| "is no cursor of this list; send a next_cursor as it was answered".to_owned())
}
