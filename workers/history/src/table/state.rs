//! `agent_state`: the newest snapshot of each session, one row per `(namespace, agent, session)`
//! (SPEC Q-TAB-01, Q-SES-06).

use std::sync::Arc;

use domain::failure::Failure;
use domain::time::rfc3339;
use schemas::json::Json;
use schemas::record::{JournalRow, Snapshot};
use schemas::session::Head;

use super::{Cell, Column, Kind, Table};
use crate::cells::Cells;

/// Columns that name one row.
pub const KEY: [&str; 3] = ["namespace", "agent_id", "session_id"];

/// The newest journal row of a session in a batch, and the result of its last step, which may be
/// of an older row.
pub struct StateRow {
    pub row: Arc<JournalRow>,
    pub result: Option<Json>,
}

impl StateRow {
    pub fn order(&self) -> (&str, &str) {
        (self.row.key.namespace.as_str(), self.row.key.session_id.as_str())
    }

    fn head(&self) -> &Head {
        &self.row.entry.head
    }

    fn token(&self) -> Option<&str> {
        self.head().step_token.as_ref().map(|token| token.as_str())
    }

    fn conversation(&self) -> Option<&str> {
        self.row.entry.conversation_id.as_ref().map(|id| id.as_str())
    }

    /// Why it stands as it does: `{cause, stop_reason, wake_at_ms}`.
    fn context(&self) -> String {
        let head = self.head();
        let context = serde_json::json!({
            "cause": head.cause, "stop_reason": head.stop_reason, "wake_at_ms": head.wake_at_ms,
        });
        context.to_string()
    }
}

pub static STATE: Table<StateRow> = Table {
    name: "agent_state",
    columns: &[
        Column { name: "agent_id", kind: Kind::Text, cell: |r| Cell::text(r.row.entry.agent_id.as_str()) },
        Column { name: "session_id", kind: Kind::Text, cell: |r| Cell::text(r.row.key.session_id.as_str()) },
        Column { name: "status", kind: Kind::Text, cell: |r| Cell::text(r.head().status.as_str()) },
        Column {
            name: "iteration",
            kind: Kind::LongOrNull,
            cell: |r| r.head().iteration().map_or(Cell::Null, Cell::count),
        },
        Column { name: "step_token", kind: Kind::TextOrNull, cell: |r| Cell::maybe(r.token()) },
        Column {
            name: "next_step_token",
            kind: Kind::TextOrNull,
            cell: |r| Cell::text(r.head().next_step_token.as_str()),
        },
        Column { name: "result", kind: Kind::TextOrNull, cell: |r| Cell::maybe(r.result.as_ref().map(Json::as_str)) },
        Column { name: "context", kind: Kind::TextOrNull, cell: |r| Cell::owned(r.context()) },
        Column { name: "last_error", kind: Kind::TextOrNull, cell: |r| Cell::maybe(r.head().last_error.as_deref()) },
        Column { name: "conversation_id", kind: Kind::TextOrNull, cell: |r| Cell::maybe(r.conversation()) },
        Column { name: "moniker", kind: Kind::Text, cell: |r| Cell::text(&r.row.entry.moniker) },
        Column { name: "lease_epoch", kind: Kind::Long, cell: |r| Cell::Int(r.head().epoch.0) },
        Column { name: "last_updated", kind: Kind::Text, cell: |r| Cell::owned(rfc3339(r.head().updated_at_ms)) },
        // The history of a session is in `agent_steps`; the column is part of the layout.
        Column { name: "history", kind: Kind::TextOrNull, cell: |_| Cell::Null },
        Column { name: "namespace", kind: Kind::Text, cell: |r| Cell::text(r.row.key.namespace.as_str()) },
        Column { name: "state", kind: Kind::Text, cell: |r| Cell::text(r.row.entry.state.as_str()) },
        Column { name: "next_offset", kind: Kind::Long, cell: |r| Cell::count(r.head().next_offset) },
        Column { name: "head", kind: Kind::Text, cell: |r| Cell::owned(Json::of(r.head()).as_str().to_owned()) },
        Column { name: "shard", kind: Kind::Int, cell: |r| Cell::Int(i64::from(r.row.shard.0)) },
        Column { name: "seq", kind: Kind::Long, cell: |r| Cell::count(r.row.seq) },
    ],
    read: &["agent_id", "session_id", "result", "conversation_id", "moniker", "namespace", "state", "head", "seq"],
    indexed: &["session_id"],
    searched: &[],
};

pub fn decode(cells: &Cells<'_>) -> Result<Vec<Snapshot>, Failure> {
    let mut snapshots = Vec::with_capacity(cells.rows());
    for row in 0..cells.rows() {
        let Some(key) = cells.key(row)? else { continue };
        let head = cells.text("head", row)?.unwrap_or_default();
        snapshots.push(Snapshot {
            key,
            agent_id: cells.id("agent_id", row)?,
            moniker: cells.text("moniker", row)?.unwrap_or_default().to_owned(),
            conversation_id: cells.maybe_id("conversation_id", row)?,
            head: serde_json::from_str(head).map_err(|why| cells.bad("head", row, &why.to_string()))?,
            state: cells.text("state", row)?.map_or_else(Json::null, Json::lenient),
            result: cells.text("result", row)?.map(Json::lenient),
        });
    }
    Ok(snapshots)
}
