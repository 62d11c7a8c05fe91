//! Predicates and orders from typed values. No text of a caller ever becomes part of an expression.

use std::collections::BTreeSet;

use domain::conversation::kept::LogPlace;
use domain::memory::MemoryFilter;
use domain::ports::{StepPlace, StepQuery};
use lancedb::expr::{DfExpr, col, contains, is_in, lit};
use lancedb::query::ColumnOrdering;
use schemas::id::{MemoryId, SessionKey};
use schemas::json::Json;
use schemas::memory::MemoryOwner;
use serde_json::Value;

use crate::table::memories::LIVE;
use crate::transcripts::Log;

fn number(value: u64) -> DfExpr {
    lit(i64::try_from(value).unwrap_or(i64::MAX))
}

/// Rows of one session.
pub fn of_session(key: &SessionKey) -> DfExpr {
    // The session first: it has the index.
    col("session_id").eq(lit(key.session_id.as_str())).and(col("namespace").eq(lit(key.namespace.as_str())))
}

/// Rows of one session behind an offset.
pub fn after_offset(key: &SessionKey, after: u64) -> DfExpr {
    of_session(key).and(col("event_offset").gt(number(after)))
}

/// Rows whose session is one of these, in whatever namespace.
pub fn of_sessions<'k>(keys: impl Iterator<Item = &'k SessionKey>) -> DfExpr {
    is_in(col("session_id"), keys.map(|key| lit(key.session_id.as_str())).collect())
}

/// Records of one log behind a place, up to an offset.
pub fn of_log(after: &LogPlace, upto: u64) -> DfExpr {
    // The conversation first: it has the index.
    let log = col("conversation_id").eq(lit(after.conversation_id.as_str()));
    let log = log.and(col("namespace").eq(lit(after.namespace.as_str())));
    log.and(col("log_offset").gt(number(after.offset))).and(col("log_offset").lt_eq(number(upto)))
}

/// These records of one log.
pub fn at_offsets(log: &LogPlace, offsets: &[u64]) -> DfExpr {
    let (first, last) = (offsets.iter().min().copied(), offsets.iter().max().copied());
    let after = LogPlace { offset: first.unwrap_or_default().saturating_sub(1), ..log.clone() };
    let those = is_in(col("log_offset"), offsets.iter().map(|offset| number(*offset)).collect());
    of_log(&after, last.unwrap_or_default()).and(those)
}

/// Records of these logs, in whatever namespace, from the lowest of their offsets on.
pub fn of_logs(firsts: &[(Log, u64)]) -> DfExpr {
    let ids: BTreeSet<&str> = firsts.iter().map(|((_, conversation), _)| conversation.as_str()).collect();
    let first = firsts.iter().map(|(_, first)| *first).min().unwrap_or_default();
    let logs = is_in(col("conversation_id"), ids.into_iter().map(lit).collect());
    logs.and(col("log_offset").gt_eq(number(first)))
}

/// Memories of one agent.
fn of_owner(owner: &MemoryOwner) -> DfExpr {
    // The agent first: it has the index.
    col("agent_id").eq(lit(owner.agent_id.as_str())).and(col("namespace").eq(lit(owner.namespace.as_str())))
}

/// Memories of one agent with these ids, deleted ones, too.
pub fn with_ids(owner: &MemoryOwner, ids: &[&MemoryId]) -> DfExpr {
    of_owner(owner).and(is_in(col("id"), ids.iter().map(|id| lit(id.as_str())).collect()))
}

/// Memories of one agent that may pass a filter.
pub fn of_memories(owner: &MemoryOwner, filter: &MemoryFilter) -> DfExpr {
    let mut parts = vec![of_owner(owner), col("status").eq(lit(LIVE))];
    if !filter.tiers.is_empty() {
        parts.push(is_in(col("tier"), filter.tiers.iter().map(|tier| lit(tier.as_str())).collect()));
    }
    if !filter.kinds.is_empty() {
        parts.push(is_in(col("type"), filter.kinds.iter().map(|kind| lit(kind.as_str())).collect()));
    }
    parts.extend(filter.min_significance.map(|least| col("significance").gt_eq(lit(least))));
    parts.extend(filter.since_ms.map(|since| col("updated_at_ms").gt_eq(lit(since))));
    parts.extend(filter.metadata.iter().filter_map(|(name, value)| mentions(name, value)));
    parts.into_iter().reduce(DfExpr::and).unwrap_or_else(|| lit(true))
}

/// The text of a field and its value is in the metadata, somewhere. Of values that have parts, the
/// order of those is not known.
fn mentions(name: &str, value: &Value) -> Option<DfExpr> {
    let is_simple = !matches!(value, Value::Array(_) | Value::Object(_));
    let text = format!("{}:{}", Json::of(name).as_str(), Json::of(value).as_str());
    is_simple.then(|| contains(col("metadata"), lit(text)))
}

/// Those of them that have a vector of this model.
pub fn of_model(memories: DfExpr, model: &str) -> DfExpr {
    memories.and(col("embedding_model").eq(lit(model)))
}

/// What a query asks for; `None` = everything.
pub fn of_query(query: &StepQuery) -> Option<DfExpr> {
    let mut parts = Vec::new();
    parts.extend(query.session.as_ref().map(of_session));
    parts.extend(query.agent_id.as_ref().map(|agent| col("agent_id").eq(lit(agent.as_str()))));
    parts.extend(query.namespace.as_ref().map(|ns| col("namespace").eq(lit(ns.as_str()))));
    parts.extend(query.min_iteration.map(|min| col("iteration").gt_eq(number(min))));
    parts.extend(query.max_iteration.map(|max| col("iteration").lt_eq(number(max))));
    parts.extend(query.since_ms.map(|since| col("created_at_ms").gt_eq(lit(since))));
    parts.extend(query.status.map(|status| col("status").eq(lit(status.as_str()))));
    parts.extend(query.after.as_ref().map(|after| behind(query, after)));
    parts.into_iter().reduce(DfExpr::and)
}

/// `(first, second, session)` follows the place, written out: a row value has no index either.
fn behind(query: &StepQuery, place: &StepPlace) -> DfExpr {
    let [first, second, third] = columns(query);
    let value = |name: &str| match name {
        "iteration" => number(place.iteration),
        "created_at_ms" => lit(place.created_at_ms),
        _ => lit(place.session_id.as_str()),
    };
    let beyond = |name: &str| {
        let (column, value) = (col(name), value(name));
        if query.descending { column.lt(value) } else { column.gt(value) }
    };
    let at = |name: &str| col(name).eq(value(name));
    let rest = beyond(second).or(at(second).and(beyond(third)));
    beyond(first).or(at(first).and(rest))
}

/// The columns that a query orders by.
fn columns(query: &StepQuery) -> [&'static str; 3] {
    if query.by_time {
        ["created_at_ms", "iteration", "session_id"]
    } else {
        ["iteration", "created_at_ms", "session_id"]
    }
}

pub fn order_of(query: &StepQuery) -> Vec<ColumnOrdering> {
    let ordering = |name: &str| {
        if query.descending {
            ColumnOrdering::desc_nulls_first(name.to_owned())
        } else {
            ColumnOrdering::asc_nulls_last(name.to_owned())
        }
    };
    columns(query).map(ordering).into()
}

pub fn ascending(name: &str) -> Vec<ColumnOrdering> {
    vec![ColumnOrdering::asc_nulls_last(name.to_owned())]
}

pub fn descending(name: &str) -> Vec<ColumnOrdering> {
    vec![ColumnOrdering::desc_nulls_first(name.to_owned())]
}
