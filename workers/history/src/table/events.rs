//! `events`: what a session's stream has besides its steps, append-only.

use std::sync::Arc;

use domain::failure::Failure;
use domain::ports::EventRow;
use domain::time::rfc3339;
use schemas::event::{EventKind, EventRecord};
use schemas::json::Json;
use schemas::record::JournalRow;

use super::{Cell, Column, Kind, Table};
use crate::cells::Cells;

/// An event at its place in a journal row.
pub struct LogRow {
    row: Arc<JournalRow>,
    index: usize,
}

impl LogRow {
    pub fn all_of(row: &Arc<JournalRow>) -> impl Iterator<Item = Self> {
        (0..row.entry.events.len()).map(|index| Self { row: row.clone(), index })
    }

    pub fn order(&self) -> (&str, &str, u64) {
        let key = &self.row.key;
        (key.namespace.as_str(), key.session_id.as_str(), self.event().offset)
    }

    fn event(&self) -> &EventRecord {
        &self.row.entry.events[self.index]
    }

    fn session(&self) -> &str {
        self.row.key.session_id.as_str()
    }
}

pub static EVENTS: Table<LogRow> = Table {
    name: "events",
    columns: &[
        Column { name: "id", kind: Kind::Text, cell: |r| Cell::owned(format!("{}:{}", r.row.key, r.event().offset)) },
        Column { name: "sequence", kind: Kind::Long, cell: |r| Cell::count(r.event().offset) },
        Column { name: "stream_id", kind: Kind::Text, cell: |r| Cell::text(r.session()) },
        Column { name: "execution_id", kind: Kind::Text, cell: |r| Cell::text(r.session()) },
        Column { name: "execution_type", kind: Kind::Text, cell: |_| Cell::text("session") },
        Column { name: "type", kind: Kind::Text, cell: |r| Cell::text(r.event().kind.as_str()) },
        // Sessions of agents that belong to a project; the column is part of the layout.
        Column { name: "project_id", kind: Kind::TextOrNull, cell: |_| Cell::Null },
        Column { name: "payload", kind: Kind::Text, cell: |r| Cell::text(r.event().data.as_str()) },
        Column { name: "created_at", kind: Kind::Text, cell: |r| Cell::owned(rfc3339(r.event().at_ms)) },
        Column { name: "created_at_ms", kind: Kind::Long, cell: |r| Cell::Int(r.event().at_ms) },
        Column { name: "namespace", kind: Kind::Text, cell: |r| Cell::text(r.row.key.namespace.as_str()) },
        Column { name: "agent_id", kind: Kind::Text, cell: |r| Cell::text(r.row.entry.agent_id.as_str()) },
        Column { name: "session_id", kind: Kind::Text, cell: |r| Cell::text(r.session()) },
        Column { name: "event_offset", kind: Kind::Long, cell: |r| Cell::count(r.event().offset) },
        Column { name: "shard", kind: Kind::Int, cell: |r| Cell::Int(i64::from(r.row.shard.0)) },
        Column { name: "seq", kind: Kind::Long, cell: |r| Cell::count(r.row.seq) },
    ],
    read: &["type", "payload", "created_at_ms", "namespace", "session_id", "event_offset"],
    indexed: &["session_id"],
    searched: &[],
};

pub fn decode(cells: &Cells<'_>) -> Result<Vec<EventRow>, Failure> {
    let mut events = Vec::with_capacity(cells.rows());
    for row in 0..cells.rows() {
        let Some(key) = cells.key(row)? else { continue };
        let kind = cells.text("type", row)?.unwrap_or_default();
        let kind = EventKind::parse(kind).ok_or_else(|| cells.bad("type", row, "is no kind of event"))?;
        let event = EventRecord {
            offset: cells.count("event_offset", row)?,
            at_ms: cells.long("created_at_ms", row)?.unwrap_or_default(),
            kind,
            data: cells.text("payload", row)?.map_or_else(Json::null, Json::lenient),
        };
        events.push(EventRow { key, event });
    }
    Ok(events)
}
