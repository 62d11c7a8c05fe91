//! The replies of a model within a turn, each with the results of its tools.

use schemas::conversation::{LogKind, LogRow, MoveView};
use schemas::limits::PAGE_BYTES_MAX;
use serde_json::Value;

use crate::time::rfc3339;

/// What moves are made of.
pub const KINDS: &[LogKind] = &[LogKind::Move, LogKind::ToolResult, LogKind::AsyncResult];

/// Bytes of the records that one move is shown with, however many results its calls have: a page of records has as much.
const MOVE_BYTES_MAX: usize = PAGE_BYTES_MAX;

/// Moves in their order. A result whose move is not among the rows is left out.
pub fn moves<'r>(rows: impl Iterator<Item = &'r LogRow>) -> Vec<MoveView> {
    let mut moves = Moves::default();
    moves.add(rows);
    moves.into_views()
}

/// Moves of a turn, as their records are read one page after the other.
#[derive(Debug, Default)]
pub struct Moves(Vec<Shown>);

#[derive(Debug)]
struct Shown {
    view: MoveView,
    /// Of the records that it is made of.
    bytes: usize,
    /// It has more results than are shown.
    is_cut: bool,
}

impl Moves {
    /// Takes records in the order of the log. What is more than one move may be shown with is left out.
    pub fn add<'r>(&mut self, rows: impl Iterator<Item = &'r LogRow>) {
        for row in rows {
            let (body, bytes) = (row.record.body.to_value(), row.record.body.as_str().len());
            match row.record.kind {
                LogKind::Move => self.0.push(Shown { view: one(row, body), bytes, is_cut: false }),
                LogKind::ToolResult | LogKind::AsyncResult => {
                    let is_late = row.record.kind == LogKind::AsyncResult;
                    if let Some(its) = self.0.iter_mut().rev().find(|its| is_of(&its.view, &body, is_late)) {
                        its.add(body, bytes);
                    }
                }
                _ => {}
            }
        }
    }

    /// Whether one of them lacks the result of a call that its model did not wait for.
    pub fn lack_results(&self) -> bool {
        self.0.iter().filter(|its| !its.is_cut).any(|its| {
            let is_there = |call: &Value| its.view.tool_results.iter().any(|result| result["tool_call_id"] == *call);
            let calls = its.view.record["in_background"].as_array().into_iter().flatten();
            calls.map(|call| &call[0]).any(|call| !is_there(call))
        })
    }

    /// Whether further results of the last one are left out, however many there are.
    pub fn is_last_cut(&self) -> bool {
        self.0.last().is_some_and(|its| its.is_cut)
    }

    /// Leaves out the last ones as long as there are more bytes; one stays. Where the first of those left out lies.
    pub fn shorten(&mut self, bytes: usize) -> Option<u64> {
        let mut all: usize = self.0.iter().map(|its| its.bytes).sum();
        let mut first = None;
        while all > bytes
            && self.0.len() > 1
            && let Some(last) = self.0.pop()
        {
            all -= last.bytes;
            first = Some(last.view.offset);
        }
        first
    }

    pub fn into_views(self) -> Vec<MoveView> {
        self.0.into_iter().map(|its| its.view).collect()
    }
}

impl Shown {
    /// Those that are shown are the first ones.
    fn add(&mut self, result: Value, bytes: usize) {
        self.is_cut |= self.bytes.saturating_add(bytes) > MOVE_BYTES_MAX;
        if !self.is_cut {
            self.view.tool_results.push(result);
            self.bytes += bytes;
        }
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
