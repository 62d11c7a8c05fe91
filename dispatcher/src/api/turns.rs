//! `GET /api/turns/{id}`, `…/moves` and `…/context`, `POST /api/turns/{id}/cancel`.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use domain::conversation::moves::{self, Moves};
use domain::conversation::{cancel as cancellation, transcript, view};
use domain::ports::{LogQuery, OperationQuery, Scope};
use domain::read;
use domain::time::rfc3339;
use host::trace;
use schemas::api::AcceptedBody;
use schemas::conversation::{LogKind, LogRow, MovePage, Turn, TurnContext, TurnDetail};
use schemas::id::{ConversationId, Namespace, TurnId};
use schemas::limits::{PAGE_BYTES_MAX, PAGE_DEFAULT, PAGE_MAX};
use schemas::problem::Code;
use serde_json::Value;

use crate::answer::{Answer, Refused};
use crate::api::sessions::PAGE_PARAMS;
use crate::caller::Caller;
use crate::extract::PathId;
use crate::gateway::Gateway;
use crate::params::Params;
use crate::routes::Route;
use crate::submit::{self, AcceptedAnswer};

/// What belongs to a turn, besides the request that it starts from.
const OF_TURN: &[LogKind] =
    &[LogKind::Message, LogKind::Move, LogKind::ToolResult, LogKind::AsyncResult, LogKind::ProviderCall];

/// How many pages of records are read on for the results of one page of moves. A result may never come, as of a call
/// whose session has ended, and each page would be looked through to the end of its turn.
const LOOKS_MAX: usize = 4;

pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/turns/{id}", get(one))
            .summary("One turn: what it answers, what it said, its moves, operations and calls of model providers.")
            .answers(200, "TurnDetail")
            .refuses(&[Code::InvalidRequest, Code::TurnNotFound]),
        Route::get("/api/turns/{id}/moves", get(list_moves))
            .summary("The replies of the model within a turn, in their order, with the results of the tools it called.")
            .query(PAGE_PARAMS)
            .answers(200, "MovePage")
            .refuses(&[Code::InvalidRequest, Code::TurnNotFound]),
        Route::get("/api/turns/{id}/context", get(context))
            .summary("What the model was given at the start of a turn: instructions, messages, tools and limits.")
            .answers(200, "TurnContext")
            .refuses(&[Code::InvalidRequest, Code::TurnNotFound]),
        Route::post("/api/turns/{id}/cancel", post(cancel))
            .scope(Scope::Act)
            .summary("Cancel a turn: it ends as failed and cancelled; what it said stays. Once is enough.")
            .answers(202, "AcceptedBody")
            .refuses(&[Code::InvalidRequest, Code::TurnNotFound, Code::TurnEnded, Code::SessionEnded])
            .refuses(&[Code::TooManyRequests, Code::StorageFull]),
    ]
}

async fn row(gateway: &Gateway, namespace: &Namespace, id: &TurnId) -> Answer<Turn> {
    let found = gateway.conversations.turn(namespace, id).await?;
    found.ok_or_else(|| {
        let detail = format!(
            "There is no turn {id}. A turn exists once its agent has taken the message that starts it; \
             GET /api/conversations/{{id}}/turns lists those there are."
        );
        Refused::new(Code::TurnNotFound, detail)
    })
}

fn records(namespace: &Namespace, turn: &Turn, kinds: &[LogKind]) -> LogQuery {
    LogQuery {
        namespace: namespace.clone(),
        conversation_id: turn.conversation_id.clone(),
        kinds: kinds.to_vec(),
        turn_id: Some(turn.turn_id.clone()),
        after: 0,
        before: None,
        since_ms: None,
        descending: false,
        limit: PAGE_MAX,
        bytes: PAGE_BYTES_MAX,
    }
}

async fn one(State(gateway): State<Gateway>, caller: Caller, PathId(id): PathId<TurnId>) -> Answer<Json<TurnDetail>> {
    let turn = row(&gateway, &caller.namespace, &id).await?;
    let query = records(&caller.namespace, &turn, OF_TURN);
    let rows = gateway.conversations.log(&query).await?;
    let truncated = has_more(&gateway, &query, &rows).await?;
    let conversations = &*gateway.conversations;
    let input = read::message(conversations, &caller.namespace, &turn.conversation_id, &turn.input_message_id).await?;
    let operations = OperationQuery {
        namespace: caller.namespace.clone(),
        conversation_id: None,
        turn_id: Some(id),
        kind: None,
        state: None,
        after: None,
        limit: PAGE_MAX,
    };
    let operations = gateway.operations.operations(&operations).await?;
    let of = |kind: LogKind| rows.iter().filter(move |row| row.record.kind == kind);
    Ok(Json(TurnDetail {
        input: input.as_ref().and_then(transcript::message_view),
        messages: of(LogKind::Message).filter_map(transcript::message_view).collect(),
        moves: moves::moves(rows.iter()),
        operations: operations.iter().map(|row| view::operation(&row.operation)).collect(),
        provider_calls: of(LogKind::ProviderCall).map(|row| row.record.body.to_value()).collect(),
        truncated,
        turn: view::turn(&turn),
    }))
}

async fn has_more(gateway: &Gateway, query: &LogQuery, rows: &[LogRow]) -> Answer<bool> {
    let Some(last) = rows.last() else { return Ok(false) };
    let rest = LogQuery { after: last.offset, limit: 1, ..query.clone() };
    Ok(!gateway.conversations.log(&rest).await?.is_empty())
}

async fn list_moves(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathId(id): PathId<TurnId>,
    mut params: Params,
) -> Answer<Json<MovePage>> {
    let after = params.whole("cursor", 0, i64::MAX as u64).unwrap_or(0);
    let limit = params.limit(PAGE_DEFAULT);
    params.finish()?;
    let turn = row(&gateway, &caller.namespace, &id).await?;
    let query = LogQuery { after, ..records(&caller.namespace, &turn, moves::KINDS) };
    let mut rows = gateway.conversations.log(&query).await?;
    let more = has_more(&gateway, &query, &rows).await?;
    // A page begins with a move and ends before one, so that each is shown with all of its results.
    let starts: Vec<usize> =
        rows.iter().enumerate().filter(|(_, row)| row.record.kind == LogKind::Move).map(|(index, _)| index).collect();
    let end = match starts.get(limit) {
        Some(end) => Some(*end),
        None if more => starts.last().copied().filter(|last| *last > 0),
        None => None,
    };
    if let Some(end) = end {
        rows.truncate(end);
    }
    let mut page = Moves::default();
    page.add(rows.iter());
    let mut next = rows.last().filter(|_| more || end.is_some()).map(|row| row.offset);
    if let Some(after) = next.filter(|_| end.is_none()) {
        next = rest_of_move(&gateway, LogQuery { after, ..query.clone() }, &mut page).await?;
    }
    if let Some(after) = next {
        let late = LogQuery { after, kinds: vec![LogKind::AsyncResult], ..query };
        next = Some(late_results(&gateway, late, &mut page).await?);
    }
    let next_cursor = next.map(|offset| offset.to_string());
    Ok(Json(MovePage { items: page.into_views(), next_cursor }))
}

/// Reads on up to the next move: the last one of a page has more results than fit into a page of records. The offset
/// before that move; `None`: there is no other.
async fn rest_of_move(gateway: &Gateway, mut query: LogQuery, page: &mut Moves) -> Answer<Option<u64>> {
    for _ in 0..LOOKS_MAX {
        if page.is_last_cut() {
            break;
        }
        let rows = gateway.conversations.log(&query).await?;
        let end = rows.iter().position(|row| row.record.kind == LogKind::Move).unwrap_or(rows.len());
        page.add(rows[..end].iter());
        if let Some(next) = rows.get(end) {
            return Ok(Some(next.offset.saturating_sub(1)));
        }
        let Some(last) = rows.last() else { return Ok(None) };
        query.after = last.offset;
    }
    // What else it has is not shown.
    let other = LogQuery { kinds: vec![LogKind::Move], limit: 1, ..query };
    Ok(gateway.conversations.log(&other).await?.first().map(|row| row.offset.saturating_sub(1)))
}

/// Adds the results of work in the background, which come behind later moves; those of others find no move here. A
/// page that gets too large by them has fewer moves. The offset that the next page comes after.
async fn late_results(gateway: &Gateway, mut query: LogQuery, page: &mut Moves) -> Answer<u64> {
    let mut next = query.after;
    for _ in 0..LOOKS_MAX {
        let rows = gateway.conversations.log(&query).await?;
        page.add(rows.iter());
        if let Some(left_out) = page.shorten(PAGE_BYTES_MAX) {
            next = left_out.saturating_sub(1);
        }
        match rows.last() {
            Some(last) if page.lack_results() => query.after = last.offset,
            _ => break,
        }
    }
    Ok(next)
}

async fn context(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathId(id): PathId<TurnId>,
) -> Answer<Json<TurnContext>> {
    let turn = row(&gateway, &caller.namespace, &id).await?;
    // The last one, if there is one for each call of the model.
    let last = LogQuery { descending: true, limit: 1, ..records(&caller.namespace, &turn, &[LogKind::Assembly]) };
    let rows = gateway.conversations.log(&last).await?;
    let record = rows.first().map(|row| &row.record);
    Ok(Json(TurnContext {
        turn_id: id,
        created_at: record.map(|record| rfc3339(record.at_ms)),
        context: record.map_or(Value::Null, |record| view::context(&record.body)),
    }))
}

async fn cancel(State(gateway): State<Gateway>, caller: Caller, PathId(id): PathId<TurnId>) -> AcceptedAnswer {
    let body = cancel_turn(&gateway, &caller, &id, None).await?;
    Ok((StatusCode::ACCEPTED, Json(body)))
}

/// Cancels a turn, of a conversation if one is given.
pub async fn cancel_turn(
    gateway: &Gateway,
    caller: &Caller,
    id: &TurnId,
    conversation: Option<&ConversationId>,
) -> Answer<AcceptedBody> {
    let begun = trace::begin();
    let turn = row(gateway, &caller.namespace, id).await?;
    if conversation.is_some_and(|one| *one != turn.conversation_id) {
        return Err(Refused::new(Code::TurnNotFound, format!("{id} is a turn of another conversation.")));
    }
    let action = cancellation::action(&caller.namespace, &turn, &caller.name)?;
    if let Some(row) = submit::target(gateway, &action).await? {
        submit::check_own(gateway, &row, &action, (false, false)).await?;
    }
    submit::accept(gateway, action, begun, "").await
}
