//! `GET /api/conversations/{id}/turns`.

use axum::Json;
use axum::extract::State;
use axum::routing::get;
use domain::action::fields::not_one_of;
use domain::conversation::view;
use domain::ports::TurnQuery;
use schemas::conversation::{TurnPage, TurnStatus};
use schemas::id::{ConversationId, TurnId};
use schemas::limits::PAGE_DEFAULT;
use schemas::problem::Code;

use super::list::read_cursor;
use super::row;
use crate::answer::Answer;
use crate::api::sessions::PAGE_PARAMS;
use crate::api::steps::{Order, read_order};
use crate::caller::Caller;
use crate::extract::PathId;
use crate::gateway::Gateway;
use crate::params::Params;
use crate::routes::Route;

pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/conversations/{id}/turns", get(list))
            .summary("Turns in the order they began. All given conditions must hold.")
            .query(&[
                ("status", "active, completed or failed"),
                ("session_id", "Turns of this session"),
                ("order", "asc or desc; asc if absent"),
            ])
            .query(PAGE_PARAMS)
            .answers(200, "TurnPage")
            .refuses(&[Code::InvalidRequest, Code::ConversationNotFound]),
    ]
}

async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathId(id): PathId<ConversationId>,
    mut params: Params,
) -> Answer<Json<TurnPage>> {
    let limit = params.limit(PAGE_DEFAULT);
    let query = TurnQuery {
        namespace: caller.namespace,
        conversation_id: Some(id),
        session_id: params.parsed("session_id"),
        status: params.read("status", read_status),
        after: params.read("cursor", |text| read_cursor(text, TurnId::parse)),
        descending: params.read("order", read_order) == Some(Order::Descending),
        limit: limit + 1,
    };
    params.finish()?;
    if let Some(id) = &query.conversation_id {
        row(&gateway, &query.namespace, id).await?;
    }
    let mut rows = gateway.conversations.turns(&query).await?;
    let more = rows.len() > limit;
    rows.truncate(limit);
    let last = rows.last().filter(|_| more);
    let next_cursor = last.map(|row| format!("{}~{}", row.created_at_ms, row.turn_id));
    Ok(Json(TurnPage { items: rows.iter().map(view::turn).collect(), next_cursor }))
}

fn read_status(text: &str) -> Result<TurnStatus, String> {
    TurnStatus::parse(text).ok_or_else(|| not_one_of(text, &["active", "completed", "failed"]))
}
