//! The replies of a model within a turn, each with the results of its tools.

use schemas::conversation::{LogKind, LogRow, MoveView};
use serde_json::Value;

use crate::time::rfc3339;

/// What moves are made of.
pub const KINDS: &[LogKind] = &[LogKind::Move, LogKind::ToolResult];

/// Moves in their order. A result whose move is not among the rows is left out.
pub fn moves<'r>(rows: impl Iterator<Item = &'r LogRow>) -> Vec<MoveView> {
    let mut moves: Vec<MoveView> = Vec::new();
    for row in rows {
        let body = row.record.body.to_value();
        match row.record.kind {
            LogKind::Move => moves.push(one(row, body)),
            LogKind::ToolResult => {
                let number = body["move"].as_u64();
                if let Some(its) = moves.iter_mut().rev().find(|its| number.is_none() || its.number == number) {
                    its.tool_results.push(body);
                }
            }
            _ => {}
        }
    }
    moves
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
