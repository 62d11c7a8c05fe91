//! Rows of conversations: their bodies are whole, and where a column says the same, the column counts.

use domain::conversation::kept::LogPlace;
use domain::failure::Failure;
use domain::ports::{OperationRow, TurnPlace, UnarchivedRow};
use domain::spending::Spent;
use schemas::conversation::{
    Conversation, ConversationStatus, LogKind, LogRecord, LogRow, Operation, OperationState, Participant, Turn,
};

use super::{Columns, count, id, json, name, opt_id, raw_json};
use crate::judge::Seat;
use crate::talking::{Forum, Place};

/// Columns of [`conversation`], of `conversations c`.
macro_rules! conversation_columns {
    () => {
        "c.status, c.last_offset, c.created_at_ms, c.updated_at_ms, c.body"
    };
}
pub(crate) use conversation_columns;

/// Columns of [`operation`], of `operations o`.
macro_rules! operation_columns {
    () => {
        "o.namespace, o.state, o.attempt, o.lost, o.created_at_ms, o.due_at_ms, o.claimed_by, o.until_ms, o.error, \
         o.body"
    };
}
pub(crate) use operation_columns;

pub(crate) fn place(row: &impl Columns) -> Result<Place, Failure> {
    Ok((id(row, "namespace")?, id(row, "conversation_id")?))
}

pub(crate) fn forum(row: &impl Columns) -> Result<Forum, Failure> {
    Ok(Forum {
        status: name(row, "status", ConversationStatus::parse)?,
        created_at_ms: row.int("created_at_ms")?,
        last_offset: count(row, "last_offset")?,
    })
}

pub(crate) fn seat(row: &impl Columns) -> Result<Seat, Failure> {
    let (agent_id, session_id) = (id(row, "agent_id")?, id(row, "session_id")?);
    Ok(Seat { place: place(row)?, agent_id, session_id, moniker: row.text("moniker")?.to_owned() })
}

pub(crate) fn conversation(row: &impl Columns) -> Result<Conversation, Failure> {
    Ok(Conversation {
        status: name(row, "status", ConversationStatus::parse)?,
        last_offset: count(row, "last_offset")?,
        created_at_ms: row.int("created_at_ms")?,
        updated_at_ms: row.int("updated_at_ms")?,
        ..json(row, "body")?
    })
}

pub(crate) fn participant(row: &impl Columns) -> Result<Participant, Failure> {
    Ok(Participant {
        joined_at_ms: row.int("joined_at_ms")?,
        left_at_ms: row.opt_int("left_at_ms")?,
        ..json(row, "body")?
    })
}

pub(crate) fn log_row(row: &impl Columns) -> Result<LogRow, Failure> {
    let record = LogRecord {
        kind: name(row, "kind", LogKind::parse)?,
        id: row.text("record_id")?.to_owned(),
        turn_id: opt_id(row, "turn_id")?,
        agent_id: opt_id(row, "agent_id")?,
        session_id: opt_id(row, "session_id")?,
        at_ms: row.int("at_ms")?,
        body: raw_json(row, "body")?,
    };
    Ok(LogRow { offset: count(row, "log_offset")?, record })
}

pub(crate) fn log_place(row: &impl Columns) -> Result<LogPlace, Failure> {
    let (namespace, conversation_id) = place(row)?;
    Ok(LogPlace { namespace, conversation_id, offset: count(row, "log_offset")? })
}

/// If what the record holds cannot be read, that is told beside its place.
pub(crate) fn unarchived(row: &impl Columns) -> Result<UnarchivedRow, Failure> {
    Ok((log_place(row)?, log_row(row)))
}

pub(crate) fn spent(row: &impl Columns) -> Result<Spent, Failure> {
    let (tokens, cost_nanos, calls) = (count(row, "tokens")?, count(row, "cost_nanos")?, count(row, "calls")?);
    Ok(Spent { tokens, cost_nanos, calls })
}

pub(crate) fn turn(row: &impl Columns) -> Result<Turn, Failure> {
    json(row, "body")
}

/// A turn with its place among all that are active.
pub(crate) fn placed_turn(row: &impl Columns) -> Result<(TurnPlace, Turn), Failure> {
    let (namespace, conversation_id) = place(row)?;
    let (created_at_ms, turn_id) = (row.int("created_at_ms")?, id(row, "turn_id")?);
    Ok((TurnPlace { namespace, conversation_id, created_at_ms, turn_id }, turn(row)?))
}

pub(crate) fn operation(row: &impl Columns) -> Result<OperationRow, Failure> {
    let starts = |column| u32::try_from(row.int(column)?).map_err(|error| super::bad_value(column, error));
    let operation = Operation {
        state: name(row, "state", OperationState::parse)?,
        attempt: starts("attempt")?,
        lost: starts("lost")?,
        created_at_ms: row.int("created_at_ms")?,
        due_at_ms: row.int("due_at_ms")?,
        claimed_by: row.opt_text("claimed_by")?.map(str::to_owned),
        until_ms: row.opt_int("until_ms")?,
        error: row.opt_text("error")?.map(str::to_owned),
        ..json(row, "body")?
    };
    Ok(OperationRow { namespace: id(row, "namespace")?, operation })
}
