//! The answer of a person to what an agent wants to do.

use schemas::action::{ActionType, NewAction, Urgency};
use schemas::conversation::{Operation, OperationKind, OperationState};
use schemas::id::Namespace;
use schemas::json::Json;
use schemas::limits::DESCRIPTION_BYTES_MAX;
use schemas::problem::{Code, Problem};
use serde_json::{Value, json};

use super::parts;
use crate::action::fields::{Object, Problems};
use crate::action::hash;
use crate::tool::result_id;

const FIELDS: &[&str] = &["arguments_hash", "reason", "actor"];

/// What a person says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub approved: bool,
    pub arguments_hash: String,
    pub by: String,
    pub reason: Option<String>,
}

/// Checks a whole body. The error names every wrong field.
pub fn parse(body: &Value, approved: bool, actor: &str) -> Result<Answer, Box<Problem>> {
    let map = parts::whole(body, "{\"arguments_hash\": \"…\"}")?;
    let (object, mut problems) = (Object::new("", map), Problems::default());
    object.refuse_unknown(FIELDS, &mut problems);
    if !object.has("arguments_hash") {
        problems
            .add("arguments_hash", "is missing; repeat that of the operation, so that the answer is to what you saw");
    }
    let answer = Answer {
        approved,
        arguments_hash: object.string("arguments_hash", &mut problems).unwrap_or_default().to_owned(),
        by: parts::actor(&object, actor, &mut problems),
        reason: object.text("reason", DESCRIPTION_BYTES_MAX, &mut problems).map(str::to_owned),
    };
    problems.into_result()?;
    Ok(answer)
}

/// The `tool_result` by which the turn learns of the answer.
///
/// # Errors
/// Nobody is asked here, or something else than the answer is to.
pub fn result(namespace: &Namespace, operation: &Operation, answer: &Answer) -> Result<NewAction, Box<Problem>> {
    let id = &operation.operation_id;
    let Some(asked) = operation.approval.as_ref().filter(|_| operation.kind == OperationKind::Approval) else {
        let detail = format!("{id} waits for no person. GET /api/operations?kind=approval lists those that do.");
        return Err(Box::new(Problem::new(Code::NoOpenOperation, detail)));
    };
    if asked.arguments_hash != answer.arguments_hash {
        let detail = format!(
            "The arguments of {id} are not those of the answer: their hash is {}. Look at the operation again, and \
             answer to what is there.",
            asked.arguments_hash
        );
        return Err(Box::new(Problem::new(Code::ApprovalMismatch, detail)));
    }
    let result = json!({"approved": answer.approved, "by": answer.by, "reason": answer.reason,
                        "arguments_hash": answer.arguments_hash});
    Ok(ended(namespace, operation, &answer.by, json!({"success": true, "result": result})))
}

/// The end of an operation, as an action for its session.
fn ended(namespace: &Namespace, operation: &Operation, actor: &str, outcome: Value) -> NewAction {
    let mut payload = json!({
        "operation_id": operation.operation_id,
        "tool_call_id": operation.tool_call_id,
        "conversation_id": operation.conversation_id,
        "turn_id": operation.turn_id,
    });
    for (name, value) in outcome.as_object().into_iter().flatten() {
        payload[name] = value.clone();
    }
    NewAction {
        namespace: namespace.clone(),
        action_id: result_id(&operation.operation_id),
        kind: ActionType::ToolResult,
        session_id: Some(operation.session_id.clone()),
        agent_id: None,
        urgency: Urgency::Normal,
        actor: actor.to_owned(),
        body_hash: hash::sha256(&hash::canonical(&payload)),
        payload: Json::of(&payload),
        metadata: Json::of(&json!({})),
        session: None,
    }
}

/// The refusal of a result for what has ended already.
pub fn not_open(operation: &Operation) -> Box<Problem> {
    let state = match operation.state {
        OperationState::Pending | OperationState::Running => "being ended by somebody else just now",
        OperationState::Completed => "completed",
        OperationState::Failed => "failed",
        OperationState::Cancelled => "cancelled: its turn or session ended first",
    };
    let detail =
        format!("{} is {state}. The first result counts, and later ones change nothing.", operation.operation_id);
    Box::new(Problem::new(Code::NoOpenOperation, detail))
}
