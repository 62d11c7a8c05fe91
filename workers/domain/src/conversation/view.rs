//! Rows of conversations as the HTTP API answers them.

use schemas::conversation::{
    Conversation, ConversationStatus, ConversationView, Operation, OperationView, Participant, ParticipantView, Turn,
    TurnView,
};
use schemas::json::Json;
use serde_json::Value;

use super::approval;
use crate::time::rfc3339;
use crate::tool;

/// What is told as the status: `waiting` is active with open turns none of which can run (SPEC K-06).
pub fn status(stored: ConversationStatus, active: &[Turn]) -> ConversationStatus {
    let waits = !active.is_empty() && active.iter().all(|turn| turn.phase.is_waiting());
    match stored {
        ConversationStatus::Active if waits => ConversationStatus::Waiting,
        other => other,
    }
}

pub fn conversation(row: &Conversation, active: &[Turn]) -> ConversationView {
    ConversationView {
        created_at: rfc3339(row.created_at_ms),
        updated_at: rfc3339(row.updated_at_ms),
        conversation: Conversation { status: status(row.status, active), ..row.clone() },
    }
}

pub fn participant(row: &Participant) -> ParticipantView {
    ParticipantView {
        joined_at: rfc3339(row.joined_at_ms),
        left_at: row.left_at_ms.map(rfc3339),
        participant: row.clone(),
    }
}

pub fn turn(row: &Turn) -> TurnView {
    TurnView {
        created_at: rfc3339(row.created_at_ms),
        completed_at: row.completed_at_ms.map(rfc3339),
        turn: row.clone(),
    }
}

pub fn operation(row: &Operation) -> OperationView {
    OperationView {
        question: approval::question(row),
        created_at: rfc3339(row.created_at_ms),
        until: row.until_ms.map(rfc3339),
        operation: Operation { request: tool::without_toolbox(&row.request), ..row.clone() },
    }
}

/// What a turn was given. Notes that are kept with definitions are no more shown here than there.
pub fn context(assembly: &Json) -> Value {
    let mut shown = assembly.to_value();
    for tool in shown.get_mut("tools").and_then(Value::as_array_mut).into_iter().flatten() {
        for part in ["tool", "target"] {
            if let Some(fields) = tool.get_mut(part).and_then(Value::as_object_mut) {
                fields.remove("chosen");
            }
        }
    }
    shown
}
