//! Bodies of requests, as in `/openapi.json`. The gateway reads them field by field, so that it
//! can name every wrong one (`domain::action::parse`); clients may serialise these.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::action::{ActionType, Urgency};
use crate::id::{ActionId, AgentId, ConversationId, SessionId};

/// One action. Which fields `payload` has depends on `type`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ActionBody {
    #[serde(rename = "type")]
    pub kind: ActionType,
    /// Also the idempotency key. A fresh one is made if it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_id: Option<ActionId>,
    /// For `create` the id of the new session, else the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Without a session id it means the newest session of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Payload>,
    /// Kept and shown, not interpreted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub urgency: Option<Urgency>,
    /// Who acts; the name of the token unless given. Not as whom the fleet itself acts (`session:…`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
}

/// A payload, by the type of its action.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Payload {
    Create(CreatePayload),
    Interrupt(InterruptPayload),
    ToolResult(ToolResultPayload),
    Reason(ReasonPayload),
    Input(InputPayload),
}

/// Payload of `create`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreatePayload {
    pub moniker: String,
    /// State of the first step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Map<String, Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The moniker's own settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Map<String, Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<ConversationId>,
    /// Whether a step with `done` ends the session. Default: the moniker's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_on_done: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u64>,
    /// Seconds since the create action was applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_runtime_s: Option<u64>,
    /// Milliseconds from the end of a step to the start of the next. Default: the moniker's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loop_interval_ms: Option<u64>,
}

/// Payload of `interrupt`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct InterruptPayload {
    /// Given to exactly one later step.
    pub guidance: Map<String, Value>,
    /// `now` cancels the running model call and runs the step again with the guidance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
}

/// Payload of `tool_result`: one of the two ids, and one of result and error.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolResultPayload {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// A text, or an object `{code, message, retriable}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Value>,
    /// Attempt of the task, from 1, as at its claim. With it, a failure that is told once more ends no later attempt.
    /// Workers that report a retriable failure say it. Without it, one is refused if the task has failed before and is
    /// somebody else's now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
}

/// Payload of `pause`, `resume` and `destroy`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReasonPayload {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Payload of `input`: at least one field, of which `text` is the usual one.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub struct InputPayload {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(flatten)]
    pub more: Map<String, Value>,
}
