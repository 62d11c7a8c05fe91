//! `conversation_records`: what models and tools made of turns, as it is, append-only: contexts, replies, results, and
//! the records of providers' calls (SPEC C-PRV-08). After a while, SQL has none of their bodies.

use domain::conversation::kept::{KeptRecord, LogPlace};
use domain::time::rfc3339;

use super::{Cell, Column, Kind, Table};
use crate::transcripts::Logged;

impl Logged for KeptRecord {
    const ID: &'static str = "id";

    fn place(&self) -> &LogPlace {
        &self.place
    }

    fn id(&self) -> &str {
        &self.record.id
    }
}

pub static RECORDS: Table<KeptRecord> = Table {
    name: "conversation_records",
    columns: &[
        Column { name: "id", kind: Kind::Text, cell: |r| Cell::text(r.id()) },
        Column { name: "conversation_id", kind: Kind::Text, cell: |r| Cell::text(r.place.conversation_id.as_str()) },
        Column { name: "log_offset", kind: Kind::Long, cell: |r| Cell::count(r.place.offset) },
        Column { name: "type", kind: Kind::Text, cell: |r| Cell::text(r.record.kind.as_str()) },
        Column {
            name: "turn_id",
            kind: Kind::TextOrNull,
            cell: |r| Cell::maybe(r.record.turn_id.as_ref().map(|id| id.as_str())),
        },
        Column {
            name: "agent_id",
            kind: Kind::TextOrNull,
            cell: |r| Cell::maybe(r.record.agent_id.as_ref().map(|id| id.as_str())),
        },
        Column {
            name: "session_id",
            kind: Kind::TextOrNull,
            cell: |r| Cell::maybe(r.record.session_id.as_ref().map(|id| id.as_str())),
        },
        Column { name: "payload", kind: Kind::Text, cell: |r| Cell::text(r.record.body.as_str()) },
        Column { name: "created_at", kind: Kind::Text, cell: |r| Cell::owned(rfc3339(r.record.at_ms)) },
        Column { name: "created_at_ms", kind: Kind::Long, cell: |r| Cell::Int(r.record.at_ms) },
        Column { name: "namespace", kind: Kind::Text, cell: |r| Cell::text(r.place.namespace.as_str()) },
    ],
    read: &["namespace", "conversation_id", "log_offset", "id", "payload"],
    indexed: &["conversation_id"],
    searched: &[],
};
