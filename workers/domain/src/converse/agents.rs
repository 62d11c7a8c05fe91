//! Agents that call agents (SPEC 1.19): a delegate works alone in a conversation of its own and
//! answers the caller; one that is looped in joins the conversation and stays.

use schemas::action::ActionType;
use schemas::conversation::Caller;
use schemas::definition::InvocationMode;
use schemas::id::{AgentId, ConversationId, OperationId, SessionId, TurnId};
use schemas::json::Json;
use schemas::session::{NewSession, SessionSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::ids;
use super::settings::DEPTH_MAX;
use crate::action::MODE_NOW;
use crate::chat::{ToolError, ToolErrorCode, ToolResult};
use crate::moniker::{FollowUp, SpawnedSession};

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
    /// The session that works on it.
    pub fn child(&self) -> SessionId {
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

/// The actions that make the call: a session, and its input.
pub(super) fn actions(call: &AgentCall, from: &From<'_>) -> Vec<FollowUp> {
    let child = call.child();
    let delegate = call.mode == InvocationMode::Delegate;
    let conversation =
        if delegate { ids::conversation_id(call.operation_id.as_str(), "c") } else { from.conversation.clone() };
    let config = json!({ "single_turn": delegate, "depth": from.depth + 1 });
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
    let session =
        NewSession { session_id: child.clone(), agent_id: call.agent_id.clone(), spec, state: Json::of(&json!({})) };
    let create = FollowUp {
        action_id: ids::action_id(call.operation_id.as_str(), "create"),
        kind: ActionType::Create,
        session_id: child.clone(),
        agent_id: Some(call.agent_id.clone()),
        payload: Json::of(&payload),
        session: Some(SpawnedSession(session)),
    };
    let input = FollowUp {
        action_id: ids::action_id(call.operation_id.as_str(), "input"),
        kind: ActionType::Input,
        session_id: child,
        agent_id: None,
        payload: Json::of(&Value::Object(input(call, from, delegate))),
        session: None,
    };
    vec![create, input]
}

fn input(call: &AgentCall, from: &From<'_>, delegate: bool) -> Map<String, Value> {
    let caller = Caller::Agent { agent_id: from.agent.clone(), turn_id: from.turn.clone() };
    let mut input = Map::new();
    input.insert("text".to_owned(), text(&call.input).into());
    input.insert("turn_id".to_owned(), json!(call.child_turn()));
    input.insert("name".to_owned(), json!(from.agent));
    input.insert("caller".to_owned(), json!(caller));
    if delegate {
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

/// The end of a delegated turn, as its caller gets it (SPEC W-INV-08).
pub(super) fn answer(to: &super::state::ReplyTo, outcome: Result<Value, ToolError>) -> FollowUp {
    let (mut payload, success) = match outcome {
        Ok(result) => (json!({ "result": result }), true),
        Err(error) => (json!({ "error": error }), false),
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
    }
}

/// The end of a call whose input nobody takes.
pub fn unanswered(input: &Value, problem: &str) -> Option<FollowUp> {
    let to = super::start::reply_to(input)?;
    let message = format!("The called agent did not take its input: {problem}");
    Some(answer(&to, Err(ToolError { code: ToolErrorCode::ExecutionFailed, message, retriable: true })))
}

/// Ends the turn of an agent that was looped in, and that stays, when the turn that asked is cancelled.
pub(super) fn cancel(joined: &super::state::Joined) -> FollowUp {
    FollowUp {
        action_id: ids::action_id(joined.turn_id.as_str(), "cancel"),
        kind: ActionType::Interrupt,
        session_id: joined.session_id.clone(),
        agent_id: None,
        payload: Json::of(&json!({"guidance": {"cancel_turn": joined.turn_id}, "mode": MODE_NOW})),
        session: None,
    }
}

/// Ends the work of a called agent whose caller has no use for it any more.
pub(super) fn stop(operation: &OperationId, child: &SessionId) -> FollowUp {
    FollowUp {
        action_id: ids::action_id(operation.as_str(), "stop"),
        kind: ActionType::Destroy,
        session_id: child.clone(),
        agent_id: None,
        payload: Json::of(&json!({"reason": "the turn that asked for it has ended"})),
        session: None,
    }
}
