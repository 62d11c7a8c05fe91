//! `agent_steps`: one row per committed step, append-only (SPEC Q-TAB-03).

use std::sync::Arc;

use domain::failure::Failure;
use domain::time::rfc3339;
use schemas::frame::StepToken;
use schemas::json::Json;
use schemas::record::{JournalRow, StepRecord, StepStatus, StoredStep};

use super::{Cell, Column, Kind, Table};
use crate::cells::Cells;

/// A step at its place in a journal row.
pub struct StepRow {
    row: Arc<JournalRow>,
    index: usize,
}

impl StepRow {
    pub fn all_of(row: &Arc<JournalRow>) -> impl Iterator<Item = Self> {
        (0..row.entry.steps.len()).map(|index| Self { row: row.clone(), index })
    }

    /// Rows of a session stand together, in order: a read of one session is then a read of few pages.
    pub fn order(&self) -> (&str, &str, u64) {
        let key = &self.row.key;
        (key.namespace.as_str(), key.session_id.as_str(), self.step().iteration)
    }

    fn step(&self) -> &StepRecord {
        &self.row.entry.steps[self.index]
    }

    fn conversation(&self) -> Option<&str> {
        self.row.entry.conversation_id.as_ref().map(|id| id.as_str())
    }

    fn turn(&self) -> Option<&str> {
        self.step().turn_id.as_ref().map(|id| id.as_str())
    }

    /// `<namespace>/<session>:<iteration>:<event_seq>`: the same for every repeat.
    fn id(&self) -> String {
        format!("{}:{}:0", self.row.key, self.step().iteration)
    }
}

fn json(value: &Option<Json>) -> Cell<'_> {
    Cell::maybe(value.as_ref().map(Json::as_str))
}

pub static STEPS: Table<StepRow> = Table {
    name: "agent_steps",
    columns: &[
        Column { name: "id", kind: Kind::Text, cell: |r| Cell::owned(r.id()) },
        Column { name: "created_at", kind: Kind::Text, cell: |r| Cell::owned(rfc3339(r.step().created_at_ms)) },
        Column { name: "created_at_ms", kind: Kind::Long, cell: |r| Cell::Int(r.step().created_at_ms) },
        Column { name: "namespace", kind: Kind::Text, cell: |r| Cell::text(r.row.key.namespace.as_str()) },
        Column { name: "agent_id", kind: Kind::Text, cell: |r| Cell::text(r.row.entry.agent_id.as_str()) },
        Column { name: "session_id", kind: Kind::Text, cell: |r| Cell::text(r.row.key.session_id.as_str()) },
        Column { name: "conversation_id", kind: Kind::TextOrNull, cell: |r| Cell::maybe(r.conversation()) },
        Column { name: "turn_id", kind: Kind::TextOrNull, cell: |r| Cell::maybe(r.turn()) },
        Column { name: "iteration", kind: Kind::Long, cell: |r| Cell::count(r.step().iteration) },
        Column { name: "event_seq", kind: Kind::Int, cell: |_| Cell::Int(0) },
        Column { name: "step_token", kind: Kind::Text, cell: |r| Cell::text(r.step().step_token.as_str()) },
        Column { name: "next_step_token", kind: Kind::Text, cell: |r| Cell::text(r.step().next_step_token.as_str()) },
        Column { name: "status", kind: Kind::Text, cell: |r| Cell::text(r.step().status.as_str()) },
        Column { name: "text", kind: Kind::TextOrNull, cell: |r| Cell::maybe(r.step().text.as_deref()) },
        Column { name: "data", kind: Kind::TextOrNull, cell: |r| json(&r.step().data) },
        Column { name: "state", kind: Kind::Text, cell: |r| Cell::text(r.step().state.as_str()) },
        Column { name: "guidance", kind: Kind::TextOrNull, cell: |r| json(&r.step().guidance) },
        Column { name: "notes", kind: Kind::TextOrNull, cell: |r| Cell::maybe(r.step().notes.as_deref()) },
        Column { name: "latency_ms", kind: Kind::Long, cell: |r| Cell::count(r.step().latency_ms) },
        Column { name: "error", kind: Kind::TextOrNull, cell: |r| Cell::maybe(r.step().error.as_deref()) },
        Column { name: "event_offset", kind: Kind::Long, cell: |r| Cell::count(r.step().offset) },
        Column { name: "shard", kind: Kind::Int, cell: |r| Cell::Int(i64::from(r.row.shard.0)) },
        Column { name: "seq", kind: Kind::Long, cell: |r| Cell::count(r.row.seq) },
    ],
    read: &[
        "created_at_ms",
        "namespace",
        "agent_id",
        "session_id",
        "conversation_id",
        "turn_id",
        "iteration",
        "step_token",
        "next_step_token",
        "status",
        "text",
        "data",
        "state",
        "guidance",
        "notes",
        "latency_ms",
        "error",
        "event_offset",
    ],
    indexed: &["session_id", "agent_id"],
    searched: &[],
};

/// Reads rows back. JSON that is none becomes a JSON string, an unknown status `info`: a row that
/// somebody else wrote must not make a session unreadable (SPEC Q-LAN-03, K-34).
pub fn decode(cells: &Cells<'_>) -> Result<Vec<StoredStep>, Failure> {
    let mut steps = Vec::with_capacity(cells.rows());
    for row in 0..cells.rows() {
        let Some(key) = cells.key(row)? else { continue };
        let json = |name: &str| Ok::<_, Failure>(cells.text(name, row)?.map(Json::lenient));
        let token = |name: &str| {
            let text = cells.text(name, row)?.unwrap_or_default();
            StepToken::parse(text).map_err(|why| cells.bad(name, row, &why))
        };
        steps.push(StoredStep {
            agent_id: cells.id("agent_id", row)?,
            conversation_id: cells.maybe_id("conversation_id", row)?,
            step: StepRecord {
                iteration: cells.count("iteration", row)?,
                offset: cells.count("event_offset", row)?,
                created_at_ms: cells.long("created_at_ms", row)?.unwrap_or_default(),
                turn_id: cells.maybe_id("turn_id", row)?,
                step_token: token("step_token")?,
                next_step_token: token("next_step_token")?,
                status: cells.text("status", row)?.and_then(StepStatus::parse).unwrap_or(StepStatus::Info),
                text: cells.text("text", row)?.map(str::to_owned),
                data: json("data")?,
                state: json("state")?.unwrap_or_else(Json::null),
                guidance: json("guidance")?,
                notes: cells.text("notes", row)?.map(str::to_owned),
                latency_ms: cells.count("latency_ms", row)?,
                error: cells.text("error", row)?.map(str::to_owned),
            },
            key,
        });
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};

    use super::*;

    #[test]
    fn what_somebody_else_wrote_is_read_as_it_is() {
        let text = |cells: [Option<&str>; 3]| Arc::new(StringArray::from(cells.to_vec())) as ArrayRef;
        let all = |cell: &str| text([Some(cell); 3]);
        let long = |cells: [i64; 3]| Arc::new(Int64Array::from(cells.to_vec())) as ArrayRef;
        let batch = RecordBatch::try_from_iter([
            ("created_at_ms", long([1, 2, 3])),
            ("namespace", all("default")),
            ("agent_id", all("a1")),
            // The last one is from before there were sessions.
            ("session_id", text([Some("s1"), Some("s1"), None])),
            ("conversation_id", text([None; 3])),
            ("turn_id", text([Some("t1"), None, None])),
            ("iteration", long([0, 1, 2])),
            ("step_token", all("start")),
            ("next_step_token", all("review/1")),
            ("status", text([Some("ok"), Some("splendid"), Some("ok")])),
            ("text", text([None; 3])),
            ("data", text([Some("{\"n\": 1}"), Some("why did the cat"), None])),
            ("state", text([Some("[1]"), Some("{\"n\": "), Some("")])),
            ("guidance", text([None, Some("be kind"), None])),
            ("notes", text([None; 3])),
            ("latency_ms", long([0; 3])),
            ("error", text([None; 3])),
            ("event_offset", long([2, 3, 4])),
        ]);
        let batch = batch.expect("a batch");
        let steps = decode(&Cells::new(STEPS.name, &batch)).expect("rows");
        let read: Vec<_> = steps.iter().map(|stored| &stored.step).collect();
        assert_eq!(read.iter().map(|step| step.iteration).collect::<Vec<_>>(), [0, 1]);
        let turns = read.iter().map(|step| step.turn_id.as_ref().map(|id| id.as_str()));
        assert_eq!(turns.collect::<Vec<_>>(), [Some("t1"), None]);
        assert_eq!((read[0].status, read[1].status), (StepStatus::Ok, StepStatus::Info));
        assert_eq!((&read[0].data, &read[0].state), (&Some(Json::lenient("{\"n\": 1}")), &Json::of(&[1])));
        let string = |text: &str| Json::of(text);
        assert_eq!((&read[1].data, &read[1].guidance), (&Some(string("why did the cat")), &Some(string("be kind"))));
        assert_eq!(read[1].state, string("{\"n\": "));
    }
}
