//! `tool_result {operation_id | tool_call_id, result | error}`: the end of a dispatched operation
//! (SPEC T-ACT-15).

use std::borrow::Cow;

use schemas::action::{ActionType, NewAction};
use schemas::conversation::OperationState;
use schemas::id::OperationId;
use schemas::limits::ID_BYTES_MAX;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::fields::{Object, Problems};
use crate::chat::ToolError;
use crate::tool::tool_error;

pub(super) const FIELDS: &[&str] =
    &["operation_id", "tool_call_id", "conversation_id", "turn_id", "success", "result", "error", "attempt"];

pub(super) fn check(payload: &Object<'_>, problems: &mut Problems) {
    payload.refuse_unknown(FIELDS, problems);
    for name in ["operation_id", "tool_call_id", "conversation_id", "turn_id"] {
        payload.text(name, ID_BYTES_MAX, problems);
    }
    payload.whole("attempt", 1, u64::from(u32::MAX), problems);
    if !(payload.has("operation_id") || payload.has("tool_call_id")) {
        problems
            .add("payload.operation_id", "is missing; send operation_id or tool_call_id of the operation that ended");
    }
    let success = payload.boolean("success", problems);
    match (payload.has_key("result"), payload.has("error")) {
        (false, false) => problems.add("payload.result", "is missing; send result, or error if the operation failed"),
        (true, true) => problems.add("payload.error", "stands beside result; send one of them"),
        (has_result, _) if success.is_some_and(|success| success != has_result) => {
            problems.add("payload.success", "contradicts the rest; success is true with result, false with error");
        }
        _ => {}
    }
    if payload.get("error").is_some_and(|error| !(error.is_string() || error.is_object())) {
        problems.add("payload.error", "must be a text or an object {code, message, retriable}");
    }
}

/// The operation that a result names, and how it ended.
pub fn result_of(new: &NewAction) -> Option<(OperationId, OperationState)> {
    #[derive(Deserialize)]
    struct Payload<'p> {
        #[serde(borrow, default)]
        operation_id: Option<Cow<'p, str>>,
        #[serde(default)]
        error: Option<IgnoredAny>,
    }
    if new.kind != ActionType::ToolResult {
        return None;
    }
    let payload: Payload<'_> = serde_json::from_str(new.payload.as_str()).ok()?;
    let state = if payload.error.is_some() { OperationState::Failed } else { OperationState::Completed };
    Some((OperationId::parse(&payload.operation_id?).ok()?, state))
}

/// How an attempt failed, as a result tells it.
#[derive(Debug, Clone, PartialEq)]
pub struct Failed {
    pub operation_id: OperationId,
    pub error: ToolError,
    /// Which start of the operation it was, if that is told.
    pub attempt: Option<u32>,
}

/// The failure that a result tells; `None`: it tells none, or does not name its operation by the fleet's own id.
pub fn failure_of(new: &NewAction) -> Option<Failed> {
    #[derive(Deserialize)]
    struct Payload {
        operation_id: Option<OperationId>,
        error: Option<Value>,
        attempt: Option<u32>,
    }
    if new.kind != ActionType::ToolResult {
        return None;
    }
    let payload: Payload = serde_json::from_str(new.payload.as_str()).ok()?;
    Some(Failed { operation_id: payload.operation_id?, error: tool_error(&payload.error?), attempt: payload.attempt })
}

/// Whether a payload names an operation; that says which session it is for.
pub(super) fn names_operation(payload: &Object<'_>) -> bool {
    payload.get("operation_id").and_then(Value::as_str).is_some_and(|id| OperationId::parse(id).is_ok())
}
