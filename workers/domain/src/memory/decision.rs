//! The decisions `WRITE_MEMORY` and `UPDATE_MEMORY` of a turn: their key is a label (SPEC K-26).

use schemas::problem::FieldProblem;
use serde_json::{Map, Value, json};

use super::input::{MemoryUpdate, MemoryWrite};

/// `WRITE_MEMORY { key, value }`: the memory of this label has this content afterwards.
///
/// # Errors
/// The key is no label, or the value is too large.
pub fn write(key: &str, value: &Value) -> Result<MemoryWrite, Vec<FieldProblem>> {
    MemoryWrite::check(&object(key, value)).map_err(as_decision)
}

/// `UPDATE_MEMORY { key, value }`: the memory of this label, which there must be, gets this content
/// and keeps the rest.
///
/// # Errors
/// As for [`write`].
pub fn update(key: &str, value: &Value) -> Result<MemoryUpdate, Vec<FieldProblem>> {
    MemoryUpdate::check(&object(key, value)).map_err(as_decision)
}

/// A text is kept as it is, any other value as JSON.
fn object(key: &str, value: &Value) -> Value {
    let content = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut fields = Map::new();
    fields.insert("label".to_owned(), json!(key));
    fields.insert("content".to_owned(), json!(content));
    Value::Object(fields)
}

/// In the words of the decision.
fn as_decision(problems: Vec<FieldProblem>) -> Vec<FieldProblem> {
    let rename = |problem: FieldProblem| {
        let field = match problem.field.as_str() {
            "label" => "key".to_owned(),
            "content" => "value".to_owned(),
            _ => problem.field,
        };
        FieldProblem { field, ..problem }
    };
    problems.into_iter().map(rename).collect()
}
