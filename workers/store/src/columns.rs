//! What the columns of a row mean, whatever the database: only how a value is read differs.

pub(crate) mod look;
pub(crate) mod talk;

use std::str::FromStr;

use domain::failure::Failure;
use schemas::action::{ActionOutcome, ActionType, Urgency};
use schemas::id::{SessionKey, Shard};
use schemas::json::Json;
use schemas::problem::Code;
use schemas::record::JournalRow;
use schemas::session::SessionRow;
use serde::de::DeserializeOwned;

use crate::action_row::ActionRow;

/// The types of columns, each with its read. `None` = NULL.
pub(crate) trait Columns {
    fn opt_text(&self, column: &str) -> Result<Option<&str>, Failure>;
    fn opt_int(&self, column: &str) -> Result<Option<i64>, Failure>;
    fn float(&self, column: &str) -> Result<f64, Failure>;
    fn opt_bytes(&self, column: &str) -> Result<Option<&[u8]>, Failure>;
    /// A shard's number; PostgreSQL keeps it in fewer bytes than other numbers.
    fn opt_shard(&self, column: &str) -> Result<Option<i64>, Failure>;

    fn text(&self, column: &str) -> Result<&str, Failure> {
        self.opt_text(column)?.ok_or_else(|| bad_value(column, "it is null"))
    }

    fn int(&self, column: &str) -> Result<i64, Failure> {
        self.opt_int(column)?.ok_or_else(|| bad_value(column, "it is null"))
    }

    fn bytes(&self, column: &str) -> Result<&[u8], Failure> {
        self.opt_bytes(column)?.ok_or_else(|| bad_value(column, "it is null"))
    }
}

/// A stored value that this program cannot have written.
pub(crate) fn bad_value(column: &str, problem: impl std::fmt::Display) -> Failure {
    Failure::internal(format!("the store holds a bad value in column {column}: {problem}"))
}

pub(crate) fn id<T>(row: &impl Columns, column: &str) -> Result<T, Failure>
where
    T: FromStr,
    T::Err: std::fmt::Display,
{
    row.text(column)?.parse().map_err(|error| bad_value(column, error))
}

pub(crate) fn opt_id<T>(row: &impl Columns, column: &str) -> Result<Option<T>, Failure>
where
    T: FromStr,
    T::Err: std::fmt::Display,
{
    row.opt_text(column)?.map(|text| text.parse().map_err(|error| bad_value(column, error))).transpose()
}

/// Counters and sequence numbers are never negative.
pub(crate) fn count(row: &impl Columns, column: &str) -> Result<u64, Failure> {
    u64::try_from(row.int(column)?).map_err(|error| bad_value(column, error))
}

fn opt_shard(row: &impl Columns) -> Result<Option<Shard>, Failure> {
    let number = row.opt_shard("shard")?.map(u16::try_from).transpose();
    number.map(|number| number.map(Shard)).map_err(|error| bad_value("shard", error))
}

pub(crate) fn shard(row: &impl Columns) -> Result<Shard, Failure> {
    opt_shard(row)?.ok_or_else(|| bad_value("shard", "it is null"))
}

pub(crate) fn key(row: &impl Columns) -> Result<SessionKey, Failure> {
    Ok(SessionKey::new(id(row, "namespace")?, id(row, "session_id")?))
}

/// One of a fixed set of names.
pub(crate) fn name<T>(row: &impl Columns, column: &str, parse: fn(&str) -> Option<T>) -> Result<T, Failure> {
    opt_name(row, column, parse)?.ok_or_else(|| bad_value(column, "it is null"))
}

fn opt_name<T>(row: &impl Columns, column: &str, parse: fn(&str) -> Option<T>) -> Result<Option<T>, Failure> {
    row.opt_text(column)?.map(|text| parse(text).ok_or_else(|| bad_value(column, text))).transpose()
}

pub(crate) fn json<T: DeserializeOwned>(row: &impl Columns, column: &str) -> Result<T, Failure> {
    serde_json::from_str(row.text(column)?).map_err(|error| bad_value(column, error))
}

pub(crate) fn raw_json(row: &impl Columns, column: &str) -> Result<Json, Failure> {
    Json::parse(row.text(column)?.to_owned()).map_err(|error| bad_value(column, error))
}

/// Columns of [`session_row`], of `sessions s` with `session_specs c`.
macro_rules! session_columns {
    () => {
        "s.namespace, s.session_id, s.agent_id, s.shard, s.created_at_ms, s.control_seq, s.work_seq, s.head, c.spec"
    };
}
pub(crate) use session_columns;

pub(crate) fn session_row(row: &impl Columns) -> Result<SessionRow, Failure> {
    Ok(SessionRow {
        key: key(row)?,
        agent_id: id(row, "agent_id")?,
        shard: shard(row)?,
        spec: json(row, "spec")?,
        head: json(row, "head")?,
        created_at_ms: row.int("created_at_ms")?,
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
pub(crate) use action_columns;

pub(crate) fn action_row(row: &impl Columns) -> Result<ActionRow, Failure> {
    let session_seq = row.opt_int("session_seq")?.map(u64::try_from).transpose();
    Ok(ActionRow {
        namespace: id(row, "namespace")?,
        action_id: id(row, "action_id")?,
        kind: name(row, "type", ActionType::parse)?,
        session_id: opt_id(row, "session_id")?,
        agent_id: opt_id(row, "agent_id")?,
        conversation_id: opt_id(row, "conversation_id")?,
        shard: opt_shard(row)?,
        session_seq: session_seq.map_err(|error| bad_value("session_seq", error))?,
        urgency: name(row, "urgency", Urgency::parse)?,
        actor: row.text("actor")?.to_owned(),
        body_hash: row.bytes("body_hash")?.try_into().map_err(|error| bad_value("body_hash", error))?,
        payload: raw_json(row, "payload")?,
        metadata: raw_json(row, "metadata")?,
        accepted_at_ms: row.int("accepted_at_ms")?,
        published_at_ms: row.opt_int("published_at_ms")?,
        processed_at_ms: row.opt_int("processed_at_ms")?,
        outcome: opt_name(row, "outcome", ActionOutcome::parse)?,
        code: opt_name(row, "code", Code::parse)?,
        error: row.opt_text("error")?.map(str::to_owned),
    })
}

pub(crate) fn journal_row(row: &impl Columns) -> Result<JournalRow, Failure> {
    Ok(JournalRow {
        shard: shard(row)?,
        seq: count(row, "seq")?,
        key: key(row)?,
        committed_at_ms: row.int("committed_at_ms")?,
        entry: json(row, "body")?,
    })
}
