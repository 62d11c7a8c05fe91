//! The answer of a person to what an agent wants to do.

use schemas::action::{ActionType, NewAction, Urgency};
use schemas::conversation::{Operation, OperationKind, OperationState};
use schemas::definition::ActionKind;
use schemas::id::Namespace;
use schemas::json::{Json, is_too_deep};
use schemas::limits::{APPROVAL_ANSWER_BYTES_MAX, DESCRIPTION_BYTES_MAX, TOOL_RESULT_BYTES_MAX};
use schemas::problem::{Code, Problem};
use serde::Deserialize;
use serde_json::{Value, json};

use super::parts;
use crate::action::fields::{Object, Problems, too_deep, wrong};
use crate::action::hash;
use crate::template::{Escape, rendered};
use crate::tool::{ActionRequest, Whose, finished, result_id};

const FIELDS: &[&str] = &["arguments_hash", "reason", "answer", "actor"];
/// Longest question; what it is about is shown whole beside it.
const QUESTION_CHARS_MAX: usize = 8_000;

/// What a person says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub approved: bool,
    pub arguments_hash: String,
    pub by: String,
    pub reason: Option<String>,
    /// More than a yes: what the agent gets as the result of its call.
    pub answer: Option<Value>,
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
        answer: more(&object, approved, &mut problems),
    };
    problems.into_result()?;
    Ok(answer)
}

fn more(object: &Object<'_>, approved: bool, problems: &mut Problems) -> Option<Value> {
    let given = object.get("answer")?;
    let bytes = hash::size(given);
    if !approved {
        problems.add("answer", "goes with a yes; say why not in reason");
    } else if given.as_str().is_some_and(|text| text.trim().is_empty()) {
        problems.add("answer", "must not be blank; leave it out instead");
    } else if bytes > APPROVAL_ANSWER_BYTES_MAX {
        problems.add("answer", format!("has {bytes} bytes; at most {APPROVAL_ANSWER_BYTES_MAX} are allowed"));
    }
    Some(given.clone())
}

/// The request behind a question that is the work itself: an action of kind `human`.
fn human(operation: &Operation) -> Option<ActionRequest> {
    let request: ActionRequest = operation.request.to().ok()?;
    (request.kind == ActionKind::Human).then_some(request)
}

/// What a person is asked, in words; absent where the call itself is the question.
pub fn question(operation: &Operation) -> Option<String> {
    /// A request that brings its words along, as one about a budget does.
    #[derive(Deserialize)]
    struct Worded {
        question: String,
    }
    if operation.kind != OperationKind::Approval {
        return None;
    }
    let Some(request) = human(operation) else {
        return operation.request.to::<Worded>().ok().map(|worded| worded.question);
    };
    let template = request.config.get("question")?.as_str()?;
    let whose = Whose {
        operation_id: &operation.operation_id,
        session_id: &operation.session_id,
        conversation_id: &operation.conversation_id,
        turn_id: &operation.turn_id,
        tool: &operation.tool,
    };
    // One that cannot be filled in is shown as its author wrote it.
    let text = rendered(template, &request.seen(whose), Escape::Nothing).unwrap_or_else(|_| template.to_owned());
    let end = text.char_indices().nth(QUESTION_CHARS_MAX).map(|(end, _)| end);
    let shown = end.map_or_else(|| text.clone(), |end| format!("{} …", &text[..end]));
    Some(shown).filter(|shown| !shown.trim().is_empty())
}

/// The `tool_result` by which the turn learns of the answer.
///
/// # Errors
/// Nobody is asked here, or something else than the answer is to, or the answer is not what was asked for.
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
    let mut result = json!({"approved": answer.approved, "by": answer.by, "reason": answer.reason,
                            "arguments_hash": answer.arguments_hash});
    if let Some(given) = &answer.answer {
        result["answer"] = said(operation, given)?;
    }
    Ok(ended(namespace, operation, &answer.by, json!({"success": true, "result": result})))
}

/// What a person answers, as the turn gets it: mapped, and held to the schema of the action's output.
fn said(operation: &Operation, given: &Value) -> Result<Value, Box<Problem>> {
    let Some(request) = human(operation) else {
        let what = format!("is not asked for: {} is done as it is shown, or not at all; leave it out", operation.tool);
        return Err(wrong("answer", what));
    };
    let said = finished(&request, given.clone()).map_err(|error| wrong("answer", error.message))?;
    let bytes = hash::size(&said);
    if bytes > TOOL_RESULT_BYTES_MAX {
        let what = format!("becomes {bytes} bytes for the agent; at most {TOOL_RESULT_BYTES_MAX} are taken");
        return Err(wrong("answer", what));
    }
    if is_too_deep(&said) { Err(too_deep("answer")) } else { Ok(said) }
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
        seat: None,
    }
}

/// The refusal of a result for what has ended already.
pub fn not_open(operation: &Operation) -> Box<Problem> {
    let state = match operation.state {
        OperationState::Pending | OperationState::Running => "being ended by somebody else just now",
        OperationState::Completed if operation.kind == OperationKind::Approval => {
            "completed: somebody answered it, or nobody did in time and its default counted"
        }
        OperationState::Completed => "completed",
        OperationState::Failed => "failed",
        OperationState::Cancelled => "cancelled: its turn or session ended first",
    };
    let detail =
        format!("{} is {state}. The first result counts, and later ones change nothing.", operation.operation_id);
    Box::new(Problem::new(Code::NoOpenOperation, detail))
}
