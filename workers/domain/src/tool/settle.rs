//! The end of an operation as a `tool_result` action.

use schemas::action::{ActionType, NewAction, Urgency};
use schemas::api::TaskBody;
use schemas::conversation::{Operation, OperationState};
use schemas::id::Namespace;
use schemas::json::{Json, is_too_deep};
use schemas::limits::{ERROR_CHARS_MAX, JSON_DEPTH_MAX, TOOL_RESULT_BYTES_MAX};
use serde_json::{Map, Value, json};

use super::dispatch::ActionRequest;
use super::operation::result_id;
use super::{map, schema};
use crate::action::hash;
use crate::chat::{ToolError, ToolErrorCode};
use crate::time::rfc3339;

/// State and action that end an operation. The same end of the same operation is the same action; a
/// result that is too large becomes an error that says so.
pub fn settled(
    namespace: &Namespace,
    operation: &Operation,
    outcome: Result<Value, ToolError>,
    actor: &str,
) -> (OperationState, NewAction) {
    let outcome = outcome.and_then(bounded);
    let mut payload = json!({
        "operation_id": operation.operation_id,
        "tool_call_id": operation.tool_call_id,
        "conversation_id": operation.conversation_id,
        "turn_id": operation.turn_id,
        "success": outcome.is_ok(),
    });
    let state = match outcome {
        Ok(result) => {
            payload["result"] = result;
            OperationState::Completed
        }
        Err(mut error) => {
            error.message = error.message.chars().take(ERROR_CHARS_MAX).collect();
            payload["error"] = json!(error);
            OperationState::Failed
        }
    };
    let body = json!({"type": "tool_result", "session_id": operation.session_id, "payload": payload});
    let Value::Object(map) = &body else { unreachable!("an object was just made") };
    let action = NewAction {
        namespace: namespace.clone(),
        action_id: result_id(&operation.operation_id),
        kind: ActionType::ToolResult,
        session_id: Some(operation.session_id.clone()),
        agent_id: None,
        urgency: Urgency::Normal,
        actor: actor.to_owned(),
        body_hash: hash::body(map).sha256,
        payload: Json::of(&body["payload"]),
        metadata: Json::of(&Map::new()),
        session: None,
    };
    (state, action)
}

/// The answer of a tool, if it is no larger and no deeper than is taken.
pub fn bounded(result: Value) -> Result<Value, ToolError> {
    match hash::size(&result) {
        bytes if bytes > TOOL_RESULT_BYTES_MAX => Err(too_large(bytes)),
        _ if is_too_deep(&result) => Err(too_deep()),
        _ => Ok(result),
    }
}

fn too_large(bytes: usize) -> ToolError {
    let message = format!(
        "the tool answered {bytes} bytes; at most {TOOL_RESULT_BYTES_MAX} are taken. Whether it had an effect is not \
         undone by this; ask for less"
    );
    ToolError { code: ToolErrorCode::ExecutionFailed, message, retriable: false }
}

fn too_deep() -> ToolError {
    let message = format!(
        "the tool's answer is nested more than {JSON_DEPTH_MAX} levels deep. Whether it had an effect is not undone by \
         this; ask for less"
    );
    ToolError { code: ToolErrorCode::ExecutionFailed, message, retriable: false }
}

/// The end of a task that nobody took for as long as it may wait (SPEC W-ERR-04).
pub fn untaken(operation: &Operation) -> ToolError {
    let (tool, seconds) = (&operation.tool, operation.wait_ms.unwrap_or(0) / 1_000);
    let message = match operation.state {
        OperationState::Running => format!(
            "whoever began {tool} was not heard of again, and nobody took it up within {seconds} s; it is in doubt \
             whether it took effect"
        ),
        _ => format!("no worker took {tool} within {seconds} s; nothing was done"),
    };
    ToolError { code: ToolErrorCode::Timeout, message, retriable: operation.state == OperationState::Pending }
}

/// The end of an agent's work that has not answered in its time.
pub fn overdue(operation: &Operation) -> ToolError {
    let (tool, seconds) = (&operation.tool, operation.timeout_ms / 1_000);
    let message = format!("{tool} did not answer within {seconds} s and was told to stop; what it did so far stays");
    ToolError { code: ToolErrorCode::Timeout, message, retriable: false }
}

/// What an action answered, as its task passes it on: mapped, and held to the schema of its output.
///
/// # Errors
/// The answer does not fit the schema.
pub fn finished(request: &ActionRequest, answer: Value) -> Result<Value, ToolError> {
    let answer = match &request.output_mapping {
        Some(mapping) => map::mapped(mapping, &answer),
        None => answer,
    };
    let errors = request.output_schema.as_ref().map(|schema| schema::check(schema, &answer)).unwrap_or_default();
    if errors.is_empty() {
        return Ok(answer);
    }
    let message = format!("the answer of {} does not fit its schema: {}", request.target_id, schema::words(&errors));
    Err(ToolError { code: ToolErrorCode::ExecutionFailed, message, retriable: false })
}

/// An operation as workers of others get it.
pub fn task_body(namespace: &Namespace, operation: &Operation, request: ActionRequest) -> TaskBody {
    let settings = request.config.get("settings").cloned().unwrap_or_else(|| json!({}));
    TaskBody {
        operation_id: operation.operation_id.clone(),
        idempotency_key: format!("{namespace}:{}", operation.operation_id),
        tool: operation.tool.clone(),
        tool_call_id: operation.tool_call_id.clone(),
        session_id: operation.session_id.clone(),
        conversation_id: operation.conversation_id.clone(),
        turn_id: operation.turn_id.clone(),
        attempt: operation.attempt,
        max_attempts: operation.max_attempts,
        until: operation.until_ms.map(rfc3339).unwrap_or_default(),
        input: request.input,
        settings,
        messages: request.context.messages.map(|messages| json!(messages)),
    }
}

/// An error as somebody else reports it: a text, or an object `{code, message, retriable}` of which
/// anything may be missing.
pub fn tool_error(value: &Value) -> ToolError {
    let code = value.get("code").and_then(|code| serde_json::from_value(code.clone()).ok());
    let message = match value {
        Value::String(text) => text.clone(),
        other => match other.get("message").and_then(Value::as_str) {
            Some(text) => text.to_owned(),
            None => other.to_string(),
        },
    };
    let retriable = value.get("retriable").and_then(Value::as_bool).unwrap_or(false);
    ToolError {
        code: code.unwrap_or(ToolErrorCode::ExecutionFailed),
        message: message.chars().take(ERROR_CHARS_MAX).collect(),
        retriable,
    }
}
