//! Agents that call agents (SPEC 1.19): a delegate works alone in a conversation of its own and
//! answers the caller; one that is looped in joins the conversation and stays.

use schemas::action::ActionType;
use schemas::conversation::{Caller, Operation, OperationKind, TurnUsage};
use schemas::definition::InvocationMode;
use schemas::id::{ActionId, AgentId, ConversationId, OperationId, SessionId, TurnId};
use schemas::json::Json;
use schemas::limits::{AGENT_MS_DEFAULT, SPENT_OF_SHARD_MAX};
use schemas::session::{NewSession, SessionSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::answers;
use super::apply::Applying;
use super::budget::Left;
use super::settings::DEPTH_MAX;
use super::start::{DEPTH, SPENT_TO};
use super::state::{Lane, ReplyTo};
use super::{guests, ids};
use crate::action::MODE_NOW;
use crate::chat::{ToolError, ToolErrorCode, ToolResult};
use crate::moniker::{FollowUp, SpawnedSession};
use crate::spending::NANOS;
pub(super) use crate::tool::SPENT;

/// A call of another agent, ready to be made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentCall {
    pub operation_id: OperationId,
    pub call_id: String,
    pub tool: String,
    pub agent_id: AgentId,
    pub mode: InvocationMode,
    /// Nothing else crosses from the caller (SPEC W-INV-06).
    pub input: Value,
    pub is_async: bool,
    /// How long it has to answer.
    #[serde(default = "usual_ms")]
    pub timeout_ms: u64,
    /// The session of the agent that took part when the model was asked. It may have ended since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seated: Option<SessionId>,
}

fn usual_ms() -> u64 {
    AGENT_MS_DEFAULT
}

/// Who calls.
pub(super) struct From<'a> {
    pub conversation: &'a ConversationId,
    pub session: &'a SessionId,
    pub agent: &'a AgentId,
    pub turn: &'a TurnId,
    pub depth: u64,
}

impl AgentCall {
    /// The session that works on it, as far as is known.
    pub fn child(&self) -> SessionId {
        self.seated.clone().unwrap_or_else(|| self.made())
    }

    /// The session that is made for it, unless the agent has a seat.
    fn made(&self) -> SessionId {
        ids::session_id(self.operation_id.as_str(), "s")
    }

    /// The turn of that session.
    pub fn child_turn(&self) -> TurnId {
        ids::turn_id(self.operation_id.as_str(), "t")
    }
}

/// What an operator sees of the call.
pub(super) fn request(call: &AgentCall) -> Json {
    Json::of(&json!({"target_type": "agent", "target_id": call.agent_id, "mode": call.mode, "input": call.input,
                     "session_id": call.child()}))
}

/// The session that works on a call, as the request of its operation names it.
pub fn works_on(operation: &Operation) -> Option<SessionId> {
    #[derive(Deserialize)]
    struct Request {
        session_id: SessionId,
    }
    if operation.kind != OperationKind::Agent {
        return None;
    }
    operation.request.to().ok().map(|request: Request| request.session_id)
}

/// A result at once, when nobody is to be called.
pub(super) fn refusal(call: &AgentCall, from: &From<'_>) -> Option<ToolResult> {
    let failed = |code, message: String| {
        let error = ToolError { code, message, retriable: false };
        Some(ToolResult::failed(call.call_id.clone(), error))
    };
    if from.depth >= DEPTH_MAX {
        let message = format!("agents may call one another {DEPTH_MAX} deep; do this yourself");
        return failed(ToolErrorCode::PermissionDenied, message);
    }
    if call.mode == InvocationMode::LoopIn && call.agent_id == *from.agent {
        return failed(ToolErrorCode::InvalidInput, "you take part in this conversation already".to_owned());
    }
    None
}

/// The actions that make the call: a session, and its input. Whether an agent that is looped in takes part already is
/// known when they are accepted, and not before: then no session is made, and it is asked at its seat. Of the caller's
/// turn: its lane, and what it has left.
pub(super) fn actions(call: &AgentCall, from: &From<'_>, (lane, left): (Option<&Lane>, Left)) -> Vec<FollowUp> {
    let joins = call.mode == InvocationMode::LoopIn;
    let input = FollowUp {
        action_id: ids::action_id(call.operation_id.as_str(), "input"),
        kind: ActionType::Input,
        session_id: call.made(),
        agent_id: joins.then(|| call.agent_id.clone()),
        payload: Json::of(&Value::Object(input(call, from, (lane, left)))),
        session: None,
        seat: joins.then(|| from.conversation.clone()),
    };
    vec![creation(call, from, left), input]
}

/// The session that works on the call. A delegate may use what its caller has left.
fn creation(call: &AgentCall, from: &From<'_>, left: Left) -> FollowUp {
    let child = call.made();
    let delegate = call.mode == InvocationMode::Delegate;
    let conversation =
        if delegate { ids::conversation_id(call.operation_id.as_str(), "c") } else { from.conversation.clone() };
    let mut config = json!({ "single_turn": delegate, "depth": from.depth + 1 });
    if delegate {
        left.bound(&mut config);
    }
    let spec = SessionSpec {
        moniker: "converse".to_owned(),
        task: None,
        config: Json::of(&config),
        stop_on_done: delegate,
        max_steps: None,
        max_runtime_ms: None,
        loop_interval_ms: 0,
        conversation_id: Some(conversation.clone()),
        parent: Some(from.session.clone()),
    };
    let payload = json!({"moniker": "converse", "config": config, "conversation_id": conversation});
    let session = NewSession {
        session_id: child.clone(),
        agent_id: call.agent_id.clone(),
        spec,
        state: Json::of(&json!({})),
        added_by_turn_id: (!delegate).then(|| from.turn.clone()),
    };
    FollowUp {
        action_id: ids::action_id(call.operation_id.as_str(), "create"),
        kind: ActionType::Create,
        session_id: child,
        agent_id: Some(call.agent_id.clone()),
        payload: Json::of(&payload),
        session: Some(SpawnedSession(session)),
        seat: (!delegate).then_some(conversation),
    }
}

fn input(call: &AgentCall, from: &From<'_>, (lane, left): (Option<&Lane>, Left)) -> Map<String, Value> {
    let mut caller = json!(Caller::Agent { agent_id: from.agent.clone(), turn_id: from.turn.clone() });
    let mut input = Map::new();
    if call.mode == InvocationMode::LoopIn {
        // Only a session that is made for the call has them among its settings, and others may have made theirs first.
        caller[DEPTH] = json!(from.depth + 1);
        let mut spent_to = json!(guests::account(call, from, lane));
        left.bound(&mut spent_to);
        input.insert(SPENT_TO.to_owned(), spent_to);
    }
    input.insert("text".to_owned(), text(&call.input).into());
    input.insert("turn_id".to_owned(), json!(call.child_turn()));
    input.insert("name".to_owned(), json!(from.agent));
    input.insert("caller".to_owned(), caller);
    if call.mode == InvocationMode::Delegate {
        let to = json!({"session_id": from.session, "operation_id": call.operation_id});
        input.insert("reply_to".to_owned(), to);
    }
    input
}

/// What the called agent reads: the only text of the input, or all of it as JSON.
fn text(input: &Value) -> String {
    match input {
        Value::String(text) => text.clone(),
        Value::Object(fields) => match fields.values().collect::<Vec<_>>().as_slice() {
            [Value::String(text)] => text.clone(),
            _ => input.to_string(),
        },
        other => other.to_string(),
    }
}

/// What the caller's model reads when somebody was looped in (SPEC K-18).
pub(super) fn joined(call: &AgentCall) -> ToolResult {
    let result = json!({"joined": true, "agent_id": call.agent_id, "session_id": call.child()});
    ToolResult::ok(call.call_id.clone(), result)
}

/// The end of a delegated turn, as its caller gets it (SPEC W-INV-08). However it ends, what it used is told.
pub(super) fn answer(to: &ReplyTo, outcome: Result<Value, ToolError>, used: TurnUsage) -> FollowUp {
    let (mut payload, success) = match outcome {
        Ok(mut result) => {
            result["usage"] = json!(used);
            (json!({ "result": result }), true)
        }
        Err(error) => (json!({ "error": error, "usage": used }), false),
    };
    payload["operation_id"] = json!(to.operation_id);
    payload["success"] = success.into();
    FollowUp {
        action_id: ids::action_id(to.operation_id.as_str(), "result"),
        kind: ActionType::ToolResult,
        session_id: to.session_id.clone(),
        agent_id: None,
        payload: Json::of(&payload),
        session: None,
        seat: None,
    }
}

/// The end of a call whose input nobody takes.
pub fn unanswered(input: &Value, problem: &str) -> Option<FollowUp> {
    let to = super::start::reply_to(input)?;
    let message = format!("The called agent did not take its input: {problem}");
    let error = ToolError { code: ToolErrorCode::ExecutionFailed, message, retriable: true };
    Some(answer(&to, Err(error), TurnUsage::default()))
}

/// What a session has used that ends before its turn does. Its caller may have ended it, and takes no answer then.
pub(super) fn spent(to: &ReplyTo, used: TurnUsage) -> FollowUp {
    let spent = json!({"operation_id": to.operation_id, "usage": used});
    tells(ids::action_id(to.operation_id.as_str(), SPENT), &to.session_id, &spent)
}

/// Guidance that tells a session what was spent for it, and its models nothing.
pub(super) fn tells(action_id: ActionId, session: &SessionId, spent: &Value) -> FollowUp {
    FollowUp {
        action_id,
        kind: ActionType::Interrupt,
        session_id: session.clone(),
        agent_id: None,
        payload: Json::of(&json!({"guidance": { SPENT: spent }})),
        session: None,
        seat: None,
    }
}

/// Whether guidance only tells what an operation has used: a called agent, which counts if its answer did not, a
/// guest, or models that were asked for it.
pub(super) fn told_spent(step: &mut Applying, guidance: &Value) -> bool {
    let Some(spent) = guidance.get(SPENT) else { return false };
    if answers::called_for(step, spent) || guests::counted(step, spent) {
        return true;
    }
    let Some(operation) = operation_of(spent) else { return false };
    step.emits.turn = step.state.spend_stopped(&operation, usage_in(spent));
    true
}

/// An answer to a call that was ended when it was on its way: only what it says of its usage counts.
pub(super) fn counted_late(step: &mut Applying, payload: &Value) -> bool {
    let used = usage_of(payload);
    let operation = operation_of(payload).filter(|_| used != TurnUsage::default());
    let turn = operation.and_then(|operation| step.state.spend_stopped(&operation, used));
    let is_counted = turn.is_some();
    step.emits.turn = turn;
    is_counted
}

pub(super) fn operation_of(named: &Value) -> Option<OperationId> {
    OperationId::parse(named.get("operation_id")?.as_str()?).ok()
}

/// The cost of a called agent adds up to its caller's. It is within a result, and beside an error.
pub(super) fn usage_of(payload: &Value) -> TurnUsage {
    let is_error = payload.get("error").is_some_and(|error| !error.is_null());
    if is_error { usage_in(payload) } else { payload.get("result").map(usage_in).unwrap_or_default() }
}

pub(super) fn usage_in(value: &Value) -> TurnUsage {
    let used = value.get("usage").and_then(|used| serde_json::from_value(used.clone()).ok());
    let used: TurnUsage = used.unwrap_or_default();
    // What others say takes nothing back, and what it adds up to stays a number: JSON has no infinity, so a state
    // with one could not be read again.
    TurnUsage {
        input_tokens: used.input_tokens.min(SPENT_OF_SHARD_MAX),
        output_tokens: used.output_tokens.min(SPENT_OF_SHARD_MAX),
        cost: used.cost.clamp(0.0, SPENT_OF_SHARD_MAX as f64 / NANOS),
    }
}

/// Ends the turn of an agent that was looped in, and that stays, when the turn that asked is cancelled.
pub(super) fn cancel(joined: &super::state::Joined, conversation: &ConversationId) -> Vec<FollowUp> {
    let turn = joined.turn_id.as_str();
    let at = |name: &str, session_id: SessionId| FollowUp {
        action_id: ids::action_id(turn, name),
        kind: ActionType::Interrupt,
        session_id,
        agent_id: joined.agent_id.clone(),
        payload: Json::of(&json!({"guidance": {"cancel_turn": joined.turn_id}, "mode": MODE_NOW})),
        session: None,
        seat: Some(conversation.clone()),
    };
    let mut cancels = vec![at("cancel", joined.session_id.clone())];
    if joined.was_there {
        // If that session had ended by then, it was asked at another seat. No session has this name, so the agent is
        // found where it sits; a turn that is cancelled twice is cancelled.
        cancels.push(at("cancel.seat", ids::session_id(turn, "seat")));
    }
    cancels
}

/// Ends the work of a called agent whose caller has no use for it any more.
pub(super) fn stop(operation: &OperationId, child: &SessionId) -> FollowUp {
    FollowUp {
        action_id: ids::action_id(operation.as_str(), "stop"),
        kind: ActionType::Destroy,
        session_id: child.clone(),
        agent_id: None,
        payload: Json::of(&json!({"reason": "its caller does not wait for it any more"})),
        session: None,
        seat: None,
    }
}
