//! `moves`: replies of models within turns, append-only. A result of a tool is a row of its own, with the
//! sequence of its reply: it may come much later.

use domain::conversation::kept::{KeptMove, LogPlace};
use domain::time::rfc3339;
use schemas::json::Json;

use super::{Cell, Column, Kind, Table};
use crate::transcripts::Logged;

impl Logged for KeptMove {
    const ID: &'static str = "id";

    fn place(&self) -> &LogPlace {
        &self.place
    }

    fn id(&self) -> &str {
        &self.id
    }
}

pub static MOVES: Table<KeptMove> = Table {
    name: "moves",
    columns: &[
        Column { name: "id", kind: Kind::Text, cell: |r| Cell::text(r.id()) },
        Column {
            name: "turn_id",
            kind: Kind::TextOrNull,
            cell: |r| Cell::maybe(r.turn_id.as_ref().map(|id| id.as_str())),
        },
        Column { name: "sequence", kind: Kind::Int, cell: |r| Cell::count(r.sequence) },
        Column { name: "reasoning", kind: Kind::TextOrNull, cell: |r| Cell::maybe(r.reasoning.as_deref()) },
        Column {
            name: "tool_calls",
            kind: Kind::TextOrNull,
            cell: |r| Cell::maybe(r.tool_calls.as_ref().map(Json::as_str)),
        },
        Column {
            name: "tool_results",
            kind: Kind::TextOrNull,
            cell: |r| Cell::maybe(r.tool_results.as_ref().map(Json::as_str)),
        },
        Column { name: "raw", kind: Kind::TextOrNull, cell: |r| Cell::maybe(r.raw.as_ref().map(Json::as_str)) },
        Column { name: "created_at", kind: Kind::Text, cell: |r| Cell::owned(rfc3339(r.at_ms)) },
        Column { name: "created_at_ms", kind: Kind::Long, cell: |r| Cell::Int(r.at_ms) },
        Column { name: "namespace", kind: Kind::Text, cell: |r| Cell::text(r.place.namespace.as_str()) },
        Column { name: "conversation_id", kind: Kind::Text, cell: |r| Cell::text(r.place.conversation_id.as_str()) },
        Column {
            name: "agent_id",
            kind: Kind::TextOrNull,
            cell: |r| Cell::maybe(r.agent_id.as_ref().map(|id| id.as_str())),
        },
        Column {
            name: "session_id",
            kind: Kind::TextOrNull,
            cell: |r| Cell::maybe(r.session_id.as_ref().map(|id| id.as_str())),
        },
        Column { name: "log_offset", kind: Kind::Long, cell: |r| Cell::count(r.place.offset) },
    ],
    read: &["namespace", "conversation_id", "log_offset", "id"],
    indexed: &["conversation_id", "turn_id"],
    searched: &[],
};
