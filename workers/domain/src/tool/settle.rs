//! The end of an operation as a `tool_result` action.

use schemas::action::{ActionType, NewAction, Urgency};
use schemas::api::TaskBody;
use schemas::conversation::{Operation, OperationKind, OperationState};
use schemas::id::{ActionId, Namespace, SessionId};
use schemas::json::{Json, is_too_deep};
use schemas::limits::{ERROR_CHARS_MAX, JSON_DEPTH_MAX, TOOL_RESULT_BYTES_MAX};
use serde_json::{Map, Value, json};

use super::dispatch::ActionRequest;
use super::operation::{result_id, spent_id};
use super::{map, schema};
use crate::action::hash;
use crate::chat::{ProviderCallRecord, ToolError, ToolErrorCode};
use crate::time::rfc3339;

/// Field of the fleet's own results and guidance: calls of models that were made for an operation.
pub(crate) const PROVIDER_CALLS: &str = "provider_calls";
/// Field of guidance that is for no model: what was used for a session by others.
pub(crate) const SPENT: &str = "spent";

/// State and action that end an operation. The same end of the same operation is the same action; a
/// result that is too large becomes an error that says so.
pub fn settled(
    namespace: &Namespace,
    operation: &Operation,
    outcome: Result<Value, ToolError>,
    actor: &str,
) -> (OperationState, NewAction) {
    settled_with(namespace, operation, outcome, actor, &[])
}

/// The same, with the calls of models that the attempt made: the step that takes the result records them.
pub fn settled_with(
    namespace: &Namespace,
    operation: &Operation,
    outcome: Result<Value, ToolError>,
    actor: &str,
    calls: &[ProviderCallRecord],
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
    if !calls.is_empty() {
        payload[PROVIDER_CALLS] = json!(calls);
    }
    let place = (namespace, &operation.session_id);
    (state, action(place, ActionType::ToolResult, result_id(&operation.operation_id), payload, actor))
}

/// What an attempt has asked of models that no result of it tells: guidance for its session, for no model.
pub fn spent(namespace: &Namespace, operation: &Operation, calls: &[ProviderCallRecord], actor: &str) -> NewAction {
    let told = json!({"operation_id": operation.operation_id, PROVIDER_CALLS: calls});
    let id = spent_id(&operation.operation_id, operation.attempt);
    let payload = json!({"guidance": {SPENT: told}});
    action((namespace, &operation.session_id), ActionType::Interrupt, id, payload, actor)
}

fn action(
    (namespace, session): (&Namespace, &SessionId),
    kind: ActionType,
    action_id: ActionId,
    payload: Value,
    actor: &str,
) -> NewAction {
    let mut body = Map::new();
    body.insert("type".to_owned(), json!(kind));
    body.insert("session_id".to_owned(), json!(session));
    body.insert("payload".to_owned(), payload);
    NewAction {
        namespace: namespace.clone(),
        action_id,
        kind,
        session_id: Some(session.clone()),
        agent_id: None,
        urgency: Urgency::Normal,
        actor: actor.to_owned(),
        body_hash: hash::body(&body).sha256,
        payload: Json::of(&body["payload"]),
        metadata: Json::of(&Map::new()),
        session: None,
        seat: None,
    }
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

/// Who answers when nobody did: the same for everybody who sees to it.
pub const APPROVER: &str = "approval-default";

/// The end of an operation whose time is over ([`crate::talk::deadline`]): an approval gets its default, all else
/// ends with `TIMEOUT`.
///
/// # Errors
/// What the turn that waits is told instead of a result.
pub fn out_of_time(operation: &Operation) -> Result<Value, ToolError> {
    match operation.kind {
        OperationKind::Approval => {
            let approved = operation.approval.as_ref().is_some_and(|asked| asked.default_approve);
            Ok(json!({"approved": approved, "by": APPROVER, "reason": "nobody answered in time"}))
        }
        OperationKind::Task => Err(untaken(operation)),
        OperationKind::Agent => Err(overdue(operation)),
    }
}

/// The end of a task that nobody took for as long as it may wait (SPEC W-ERR-04).
fn untaken(operation: &Operation) -> ToolError {
    let (tool, seconds) = (&operation.tool, operation.wait_ms.unwrap_or(0) / 1_000);
    // What is given back unbegun waits as if nobody had taken it; a start that was lost before that stays one.
    let is_begun = operation.state == OperationState::Running || operation.attempt > 0;
    let message = if is_begun {
        format!(
            "whoever began {tool} was not heard of again, and nobody took it up within {seconds} s; it is in doubt \
             whether it took effect"
        )
    } else {
        format!("no worker took {tool} within {seconds} s; nothing was done")
    };
    ToolError { code: ToolErrorCode::Timeout, message, retriable: !is_begun }
}

/// The end of an agent's work that has not answered in its time.
fn overdue(operation: &Operation) -> ToolError {
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
