//! `conversation_messages`: all that transcripts show, append-only (SPEC K-07, K-08).

use domain::conversation::kept::{KeptMessage, LogPlace};
use domain::time::rfc3339;
use schemas::json::Json;
use schemas::record::StepStatus;
use serde_json::Value;

use super::{Cell, Column, Kind, Table};
use crate::transcripts::Logged;

fn json(value: Option<&Value>) -> Cell<'static> {
    value.map_or(Cell::Null, |value| Cell::owned(Json::of(value).as_str().to_owned()))
}

impl Logged for KeptMessage {
    const ID: &'static str = "message_id";

    fn place(&self) -> &LogPlace {
        &self.place
    }

    fn id(&self) -> &str {
        self.message.message_id.as_str()
    }
}

pub static MESSAGES: Table<KeptMessage> = Table {
    name: "conversation_messages",
    columns: &[
        Column { name: "message_id", kind: Kind::Text, cell: |r| Cell::text(r.id()) },
        Column { name: "conversation_id", kind: Kind::Text, cell: |r| Cell::text(r.place.conversation_id.as_str()) },
        Column {
            name: "turn_id",
            kind: Kind::TextOrNull,
            cell: |r| Cell::maybe(r.message.turn_id.as_ref().map(|id| id.as_str())),
        },
        Column { name: "created_at", kind: Kind::Text, cell: |r| Cell::owned(rfc3339(r.at_ms)) },
        Column { name: "sender_type", kind: Kind::Text, cell: |r| Cell::text(r.message.sender_type.as_str()) },
        Column { name: "role", kind: Kind::Text, cell: |r| Cell::text(r.message.role.as_str()) },
        Column {
            name: "user_id",
            kind: Kind::TextOrNull,
            cell: |r| Cell::maybe(r.message.user_id.as_ref().map(|id| id.as_str())),
        },
        Column {
            name: "agent_id",
            kind: Kind::TextOrNull,
            cell: |r| Cell::maybe(r.message.agent_id.as_ref().map(|id| id.as_str())),
        },
        Column {
            name: "session_id",
            kind: Kind::TextOrNull,
            cell: |r| Cell::maybe(r.message.session_id.as_ref().map(|id| id.as_str())),
        },
        Column { name: "name", kind: Kind::TextOrNull, cell: |r| Cell::maybe(r.message.name.as_deref()) },
        Column { name: "text", kind: Kind::TextOrNull, cell: |r| Cell::maybe(r.message.text.as_deref()) },
        Column { name: "content", kind: Kind::TextOrNull, cell: |r| json(r.message.content.as_ref()) },
        Column { name: "data", kind: Kind::TextOrNull, cell: |r| json(r.message.data.as_ref()) },
        // Of the step that said it, as iteration, tokens and notes are; what a turn says has its step_token alone.
        Column {
            name: "status",
            kind: Kind::TextOrNull,
            cell: |r| Cell::maybe(r.message.status.map(StepStatus::as_str)),
        },
        Column { name: "event_type", kind: Kind::Text, cell: |r| Cell::text(r.message.event_type.as_str()) },
        Column {
            name: "iteration",
            kind: Kind::LongOrNull,
            cell: |r| r.message.iteration.map_or(Cell::Null, Cell::count),
        },
        Column { name: "step_token", kind: Kind::TextOrNull, cell: |r| Cell::maybe(r.message.step_token.as_deref()) },
        Column {
            name: "next_step_token",
            kind: Kind::TextOrNull,
            cell: |r| Cell::maybe(r.message.next_step_token.as_deref()),
        },
        Column {
            name: "reply_to_message_id",
            kind: Kind::TextOrNull,
            cell: |r| Cell::maybe(r.message.reply_to_message_id.as_ref().map(|id| id.as_str())),
        },
        Column {
            name: "provider_message_id",
            kind: Kind::TextOrNull,
            cell: |r| Cell::maybe(r.message.provider_message_id.as_deref()),
        },
        Column { name: "metadata", kind: Kind::TextOrNull, cell: |r| json(r.message.metadata.as_ref()) },
        Column { name: "notes", kind: Kind::TextOrNull, cell: |r| Cell::maybe(r.message.notes.as_deref()) },
        Column { name: "created_at_ms", kind: Kind::Long, cell: |r| Cell::Int(r.at_ms) },
        Column { name: "namespace", kind: Kind::Text, cell: |r| Cell::text(r.place.namespace.as_str()) },
        Column { name: "log_offset", kind: Kind::Long, cell: |r| Cell::count(r.place.offset) },
    ],
    read: &["namespace", "conversation_id", "log_offset", "message_id"],
    indexed: &["conversation_id"],
    searched: &[],
};
