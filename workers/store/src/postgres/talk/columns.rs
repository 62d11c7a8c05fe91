//! What is added to conversations, as one array for each column, in the order of the statement's
//! parameters.

use schemas::conversation::{Conversation, Operation, Participant, Turn};
use schemas::id::Namespace;
use schemas::json::Json;
use schemas::limits::{OPERATION_WAIT_MS_MAX, SPENT_OF_SHARD_MAX};

use super::super::pool::Statement;
use super::super::rows::clean;
use crate::talking::{Additions, Joined, Place, Placed, Sums};

fn list<'r, R: 'r, T>(rows: impl IntoIterator<Item = &'r R>, column: impl Fn(&'r R) -> T) -> Vec<T> {
    rows.into_iter().map(column).collect()
}

fn text(text: &str) -> String {
    clean(text).into_owned()
}

fn whole(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

pub(super) fn opened(query: Statement, additions: &Additions<'_>) -> Statement {
    let rows = || additions.opened.iter().map(|(_, new)| new);
    query
        .bind(list(&additions.opened, |(namespace, _)| namespace.as_str()))
        .bind(list(rows(), |new| new.conversation_id.as_str()))
        .bind(list(rows(), |new| new.created_at_ms))
        .bind(list(rows(), |new| new.updated_at_ms))
        .bind(list(rows(), |new| new.status.as_str()))
        .bind(list(rows(), |new| new.visibility.as_str()))
        .bind(list(rows(), |new| text(&new.created_by)))
        .bind(list(rows(), |new| new.subject_id.as_deref().map(text)))
        .bind(list(rows(), |new: &Conversation| Json::of(new).as_str().to_owned()))
}

/// Namespaces and conversations.
fn places<'p>(query: Statement, places: impl Iterator<Item = &'p Place>) -> Statement {
    let (namespaces, ids): (Vec<&str>, Vec<&str>) =
        places.map(|(namespace, id)| (namespace.as_str(), id.as_str())).unzip();
    query.bind(namespaces).bind(ids)
}

pub(super) fn joined(query: Statement, additions: &Additions<'_>) -> Statement {
    let rows = || additions.joined.iter().map(|joined| &joined.participant);
    places(query, additions.joined.iter().map(|joined| &joined.place))
        .bind(list(rows(), |new| new.participant_id.as_str()))
        .bind(list(rows(), |new| new.user_id.as_ref().map(|id| id.as_str())))
        .bind(list(rows(), |new| new.agent_id.as_ref().map(|id| id.as_str())))
        .bind(list(rows(), |new| new.session_id.as_ref().map(|id| id.as_str())))
        .bind(list(&additions.joined, |joined: &Joined| joined.opened_at_ms))
        .bind(list(rows(), |new: &Participant| new.joined_at_ms))
        .bind(list(rows(), |new| Json::of(new).as_str().to_owned()))
        .bind(list(&additions.joined, |joined: &Joined| joined.at_creation))
}

/// What [`super::sql::SAY`] says.
pub(super) fn said(query: Statement, now_ms: i64, additions: &Additions<'_>) -> Statement {
    let query = ends(placed(query, additions), additions).bind(now_ms);
    turns(spent(query, &additions.spent()), &additions.turns)
}

fn placed(query: Statement, additions: &Additions<'_>) -> Statement {
    let rows = || additions.placed.iter().map(|placed| placed.record);
    places(query, additions.placed.iter().map(|placed| &placed.place))
        .bind(list(&additions.placed, |placed: &Placed<'_>| whole(placed.offset)))
        .bind(list(rows(), |record| record.kind.as_str()))
        .bind(list(rows(), |record| record.turn_id.as_ref().map(|id| id.as_str())))
        .bind(list(rows(), |record| record.agent_id.as_ref().map(|id| id.as_str())))
        .bind(list(rows(), |record| record.session_id.as_ref().map(|id| id.as_str())))
        .bind(list(rows(), |record| record.at_ms))
        .bind(list(rows(), |record| text(&record.id)))
        .bind(list(rows(), |record| record.body.as_str()))
}

fn ends(query: Statement, additions: &Additions<'_>) -> Statement {
    let ends = additions.ends();
    places(query, ends.keys().copied()).bind(ends.values().map(|end| whole(*end)).collect::<Vec<_>>())
}

fn spent(query: Statement, sums: &Sums<'_>) -> Statement {
    query
        .bind(list(sums.keys(), |(namespace, _)| namespace.as_str().to_owned()))
        .bind(list(sums.keys(), |(_, shard)| i32::from(shard.0)))
        .bind(list(sums.values(), |spent| whole(spent.tokens)))
        .bind(list(sums.values(), |spent| whole(spent.cost_nanos)))
        .bind(list(sums.values(), |spent| whole(spent.calls)))
        .bind(whole(SPENT_OF_SHARD_MAX))
}

pub(in super::super) fn turns(query: Statement, all: &[(&Namespace, &Turn)]) -> Statement {
    let rows = || all.iter().map(|(_, turn)| *turn);
    query
        .bind(list(all, |(namespace, _)| namespace.as_str()))
        .bind(list(rows(), |turn| turn.turn_id.as_str()))
        .bind(list(rows(), |turn| turn.conversation_id.as_str()))
        .bind(list(rows(), |turn| turn.session_id.as_str()))
        .bind(list(rows(), |turn| turn.status.as_str()))
        .bind(list(rows(), |turn: &Turn| turn.created_at_ms))
        .bind(list(rows(), |turn| Json::of(turn).as_str().to_owned()))
}

/// The columns of `operation_columns!`.
pub(in super::super) fn operations(query: Statement, all: &[(&Namespace, Operation)]) -> Statement {
    let rows = || all.iter().map(|(_, operation)| operation);
    query
        .bind(list(all, |(namespace, _)| namespace.as_str()))
        .bind(list(rows(), |operation| operation.operation_id.as_str()))
        .bind(list(rows(), |operation| operation.conversation_id.as_str()))
        .bind(list(rows(), |operation| operation.session_id.as_str()))
        .bind(list(rows(), |operation| operation.turn_id.as_str()))
        .bind(list(rows(), |operation| operation.kind.as_str()))
        .bind(list(rows(), |operation| text(&operation.pool)))
        .bind(list(rows(), |operation| operation.state.as_str()))
        .bind(list(rows(), |operation| i64::from(operation.attempt)))
        .bind(list(rows(), |operation| whole(operation.timeout_ms)))
        .bind(list(rows(), |operation| operation.created_at_ms))
        .bind(list(rows(), |operation| operation.due_at_ms))
        .bind(list(rows(), |operation| operation.claimed_by.as_deref().map(text)))
        .bind(list(rows(), |operation| operation.until_ms))
        .bind(list(rows(), |operation| operation.error.as_deref().map(text)))
        .bind(list(rows(), |operation: &Operation| Json::of(operation).as_str().to_owned()))
        .bind(list(rows(), |operation| operation.wait_ms.map(|ms| whole(ms.min(OPERATION_WAIT_MS_MAX)))))
}

pub(super) fn ended(query: Statement, additions: &Additions<'_>) -> Statement {
    let mut rows: Vec<_> = additions.ended.iter().collect();
    rows.sort_by_key(|(namespace, id, _)| (namespace, id));
    query
        .bind(list(rows.iter().copied(), |(namespace, _, _)| namespace.as_str()))
        .bind(list(rows.iter().copied(), |(_, id, _)| id.as_str()))
        .bind(list(rows.iter().copied(), |(_, _, state)| state.as_str()))
}
