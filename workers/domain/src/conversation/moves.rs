//! The replies of a model within a turn, each with the results of its tools.

use schemas::conversation::{LogKind, LogRow, MoveView};
use serde_json::Value;

use crate::time::rfc3339;

/// What moves are made of.
pub const KINDS: &[LogKind] = &[LogKind::Move, LogKind::ToolResult, LogKind::AsyncResult];

/// Moves in their order. A result whose move is not among the rows is left out.
pub fn moves<'r>(rows: impl Iterator<Item = &'r LogRow>) -> Vec<MoveView> {
    let mut moves: Vec<MoveView> = Vec::new();
    for row in rows {
        let body = row.record.body.to_value();
        match row.record.kind {
            LogKind::Move => moves.push(one(row, body)),
            LogKind::ToolResult | LogKind::AsyncResult => {
                let is_late = row.record.kind == LogKind::AsyncResult;
                if let Some(its) = moves.iter_mut().rev().find(|its| is_of(its, &body, is_late)) {
                    its.tool_results.push(body);
                }
            }
            _ => {}
        }
    }
    moves
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
