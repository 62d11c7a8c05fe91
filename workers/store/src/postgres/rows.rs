//! Rows as they are stored, and what they mean.

use std::borrow::Cow;
use std::str::FromStr;

use domain::failure::Failure;
use schemas::action::{ActionOutcome, ActionType, Urgency};
use schemas::id::{SessionKey, Shard};
use schemas::json::Json;
use schemas::problem::Code;
use schemas::record::JournalRow;
use schemas::session::SessionRow;
use serde::de::DeserializeOwned;
use sqlx::postgres::PgRow;
use sqlx::{Decode, Postgres, Row, Type};

use super::failure::{bad_value, failure};
use crate::action_row::ActionRow;

/// The database's clock, at the moment this is evaluated.
macro_rules! now {
    () => {
        "floor(extract(epoch FROM clock_timestamp()) * 1000)::int8"
    };
}
pub(super) use now;

/// What is not younger than the parameter (milliseconds; 0: all) lies before this time. It is one
/// value for the whole statement, so that an index can be searched with it.
macro_rules! bound {
    ($age:literal) => {
        concat!(
            "CASE WHEN ",
            $age,
            "::int8 = 0 THEN 9223372036854775807 ELSE floor(extract(epoch FROM statement_timestamp()) * 1000)::int8 - ",
            $age,
            "::int8 + 1 END"
        )
    };
}
pub(super) use bound;

/// An age as a parameter of [`bound!`].
pub(super) fn age(age_ms: u64) -> i64 {
    i64::try_from(age_ms).unwrap_or(i64::MAX)
}

/// PostgreSQL's texts hold no NUL. Of free text, nothing hangs on one.
pub(super) fn clean(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{FFFD}")) } else { Cow::Borrowed(text) }
}

/// The value of a column.
pub(super) fn get<'r, T>(row: &'r PgRow, column: &str) -> Result<T, Failure>
where
    T: Decode<'r, Postgres> + Type<Postgres>,
{
    row.try_get(column).map_err(failure)
}

pub(super) fn id<T>(row: &PgRow, column: &str) -> Result<T, Failure>
where
    T: FromStr,
    T::Err: std::fmt::Display,
{
    get::<&str>(row, column)?.parse().map_err(|error| bad_value(column, error))
}

pub(super) fn opt_id<T>(row: &PgRow, column: &str) -> Result<Option<T>, Failure>
where
    T: FromStr,
    T::Err: std::fmt::Display,
{
    let text: Option<&str> = get(row, column)?;
    text.map(|text| text.parse().map_err(|error| bad_value(column, error))).transpose()
}

/// Counters and sequence numbers are never negative.
pub(super) fn count(row: &PgRow, column: &str) -> Result<u64, Failure> {
    u64::try_from(get::<i64>(row, column)?).map_err(|error| bad_value(column, error))
}

pub(super) fn shard(row: &PgRow) -> Result<Shard, Failure> {
    u16::try_from(get::<i32>(row, "shard")?).map(Shard).map_err(|error| bad_value("shard", error))
}

pub(super) fn key(row: &PgRow) -> Result<SessionKey, Failure> {
    Ok(SessionKey::new(id(row, "namespace")?, id(row, "session_id")?))
}

/// One of a fixed set of names.
pub(super) fn name<T>(row: &PgRow, column: &str, parse: fn(&str) -> Option<T>) -> Result<T, Failure> {
    let text: &str = get(row, column)?;
    parse(text).ok_or_else(|| bad_value(column, text))
}

fn opt_name<T>(row: &PgRow, column: &str, parse: fn(&str) -> Option<T>) -> Result<Option<T>, Failure> {
    let text: Option<&str> = get(row, column)?;
    text.map(|text| parse(text).ok_or_else(|| bad_value(column, text))).transpose()
}

pub(super) fn json<T: DeserializeOwned>(row: &PgRow, column: &str) -> Result<T, Failure> {
    serde_json::from_str(get(row, column)?).map_err(|error| bad_value(column, error))
}

pub(super) fn raw_json(row: &PgRow, column: &str) -> Result<Json, Failure> {
    Json::parse(get(row, column)?).map_err(|error| bad_value(column, error))
}

/// Columns of [`session_row`], of `sessions s` with `session_specs c`.
macro_rules! session_columns {
    () => {
        "s.namespace, s.session_id, s.agent_id, s.shard, s.created_at_ms, s.control_seq, s.work_seq, s.head, c.spec"
    };
}
pub(super) use session_columns;

pub(super) fn session_row(row: &PgRow) -> Result<SessionRow, Failure> {
    Ok(SessionRow {
        key: key(row)?,
        agent_id: id(row, "agent_id")?,
        shard: shard(row)?,
        spec: json(row, "spec")?,
        head: json(row, "head")?,
        created_at_ms: get(row, "created_at_ms")?,
        control_seq: count(row, "control_seq")?,
        work_seq: count(row, "work_seq")?,
    })
}

/// Columns of [`action_row`], of `actions a` with `sessions s`.
macro_rules! action_columns {
    () => {
        "a.namespace, a.action_id, a.type, a.session_id, a.agent_id, s.conversation_id, a.shard, a.session_seq, \
         a.accepted_at_ms, a.published_at_ms, a.processed_at_ms, a.outcome, a.code, a.error, a.urgency, a.actor, \
         a.body_hash, a.payload, a.metadata"
    };
}
pub(super) use action_columns;

pub(super) fn action_row(row: &PgRow) -> Result<ActionRow, Failure> {
    let hash: &[u8] = get(row, "body_hash")?;
    let small = |n: Option<i32>| n.map(u16::try_from).transpose().map_err(|error| bad_value("shard", error));
    let large = |n: Option<i64>| n.map(u64::try_from).transpose().map_err(|error| bad_value("session_seq", error));
    Ok(ActionRow {
        namespace: id(row, "namespace")?,
        action_id: id(row, "action_id")?,
        kind: name(row, "type", ActionType::parse)?,
        session_id: opt_id(row, "session_id")?,
        agent_id: opt_id(row, "agent_id")?,
        conversation_id: opt_id(row, "conversation_id")?,
        shard: small(get(row, "shard")?)?.map(Shard),
        session_seq: large(get(row, "session_seq")?)?,
        urgency: name(row, "urgency", Urgency::parse)?,
        actor: get(row, "actor")?,
        body_hash: hash.try_into().map_err(|error| bad_value("body_hash", error))?,
        payload: raw_json(row, "payload")?,
        metadata: raw_json(row, "metadata")?,
        accepted_at_ms: get(row, "accepted_at_ms")?,
        published_at_ms: get(row, "published_at_ms")?,
        processed_at_ms: get(row, "processed_at_ms")?,
        outcome: opt_name(row, "outcome", ActionOutcome::parse)?,
        code: opt_name(row, "code", Code::parse)?,
        error: get(row, "error")?,
    })
}

pub(super) fn journal_row(row: &PgRow) -> Result<JournalRow, Failure> {
    Ok(JournalRow {
        shard: shard(row)?,
        seq: count(row, "seq")?,
        key: key(row)?,
        committed_at_ms: get(row, "committed_at_ms")?,
        entry: json(row, "body")?,
    })
}
