//! The replies of a model within a turn, each with the results of its tools.

use schemas::conversation::{LogKind, LogRow, MoveView};
use serde_json::Value;

use crate::time::rfc3339;

/// What moves are made of.
pub const KINDS: &[LogKind] = &[LogKind::Move, LogKind::ToolResult, LogKind::AsyncResult];

/// Moves in their order. A result whose move is not among the rows is left out.
pub fn moves<'r>(rows: impl Iterator<Item = &'r LogRow>) -> Vec<MoveView> {
    let mut moves = Moves::default();
    moves.add(rows);
    moves.into_views()
}

/// Moves of a turn, as their records are read one page after the other.
#[derive(Debug, Default)]
pub struct Moves {
    views: Vec<MoveView>,
    /// Bytes of the records that each is made of.
    bytes: Vec<usize>,
}

impl Moves {
    /// Takes records in the order of the log.
    pub fn add<'r>(&mut self, rows: impl Iterator<Item = &'r LogRow>) {
        for row in rows {
            let (body, bytes) = (row.record.body.to_value(), row.record.body.as_str().len());
            match row.record.kind {
                LogKind::Move => {
                    self.views.push(one(row, body));
                    self.bytes.push(bytes);
                }
                LogKind::ToolResult | LogKind::AsyncResult => {
                    let is_late = row.record.kind == LogKind::AsyncResult;
                    if let Some(at) = self.views.iter().rposition(|its| is_of(its, &body, is_late)) {
                        self.views[at].tool_results.push(body);
                        self.bytes[at] += bytes;
                    }
                }
                _ => {}
            }
        }
    }

    /// Whether one of them lacks the result of a call that its model did not wait for.
    pub fn lack_results(&self) -> bool {
        self.views.iter().any(|its| {
            let is_there = |call: &Value| its.tool_results.iter().any(|result| result["tool_call_id"] == *call);
            let calls = its.record["in_background"].as_array().into_iter().flatten();
            calls.map(|call| &call[0]).any(|call| !is_there(call))
        })
    }

    /// Leaves out the last ones as long as there are more bytes; one stays. Where the first of those left out lies.
    pub fn shorten(&mut self, bytes: usize) -> Option<u64> {
        let mut all: usize = self.bytes.iter().sum();
        let mut first = None;
        while all > bytes && self.views.len() > 1 {
            all -= self.bytes.pop().unwrap_or_default();
            first = self.views.pop().map(|its| its.offset);
        }
        first
    }

    pub fn into_views(self) -> Vec<MoveView> {
        self.views
    }
}

/// Whether a result belongs to this reply. A late one that does not say so, as earlier releases wrote them, is told by
/// the id of its call; any other comes behind its reply.
fn is_of(its: &MoveView, result: &Value, is_late: bool) -> bool {
    match (result["move"].as_u64(), result["tool_call_id"].as_str()) {
        (Some(number), _) => its.number == Some(number),
        (None, call) if is_late => its.tool_calls.iter().any(|one| call.is_some() && one["id"].as_str() == call),
        (None, _) => true,
    }
}

fn one(row: &LogRow, body: Value) -> MoveView {
    let given = |name: &str| body.get(name).filter(|value| !value.is_null()).cloned();
    MoveView {
        offset: row.offset,
        created_at: rfc3339(row.record.at_ms),
        number: body["move"].as_u64(),
        reasoning: given("reasoning"),
        tool_calls: body["tool_calls"].as_array().cloned().unwrap_or_default(),
        tool_results: Vec::new(),
        finish: given("finish"),
        record: body,
    }
}
