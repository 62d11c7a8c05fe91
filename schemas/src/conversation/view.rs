//! Conversations as the HTTP API answers them.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{Conversation, Message, Operation, Participant, Turn};
use crate::id::{ActionId, AgentId, ConversationId, MessageId, OperationId, ParticipantId, SessionId, TurnId};
use crate::problem::Code;

/// A conversation; its status may be `waiting`: turns are open, and none of them can run.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ConversationView {
    #[serde(flatten)]
    pub conversation: Conversation,
    pub created_at: String,
    pub updated_at: String,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ConversationPage {
    pub items: Vec<ConversationView>,
    pub next_cursor: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ParticipantView {
    #[serde(flatten)]
    pub participant: Participant,
    pub joined_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_at: Option<String>,
}

/// All of them: those who take part now come first.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ParticipantPage {
    pub items: Vec<ParticipantView>,
    pub next_cursor: Option<String>,
}

/// A session that was started so that its agent can speak.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StartedAgent {
    pub agent_id: AgentId,
    pub session_id: SessionId,
    pub participant_id: ParticipantId,
    /// The create action.
    pub action_id: ActionId,
    /// False when this very action was accepted before.
    pub accepted: bool,
}

/// One conversation, who takes part, and what is under way.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ConversationDetail {
    pub conversation: ConversationView,
    pub participants: Vec<ParticipantView>,
    pub active_turns: Vec<TurnView>,
}

/// Answer to `POST /api/conversations`: 201 if it is new, 200 for a repeat.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ConversationCreated {
    pub conversation: ConversationView,
    pub created: bool,
    pub participants: Vec<ParticipantView>,
    pub started: Vec<StartedAgent>,
}

/// Answer to `POST …/participants`: 201 if they joined now, 200 if they took part already.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct JoinAnswer {
    pub participant: ParticipantView,
    pub joined: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<StartedAgent>,
}

/// A message at its place in the transcript.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct MessageView {
    pub offset: u64,
    pub created_at: String,
    #[serde(flatten)]
    pub message: Message,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct MessagePage {
    pub items: Vec<MessageView>,
    pub next_cursor: Option<String>,
}

/// What a message led to, agent by agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PostAnswer {
    pub conversation_id: ConversationId,
    pub message_id: MessageId,
    /// Its place in the log.
    pub offset: u64,
    pub responders: Vec<Responder>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Responder {
    pub agent_id: AgentId,
    pub session_id: SessionId,
    pub participant_id: ParticipantId,
    pub outcome: PostOutcome,
    /// With `turn`: the turn that the message starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<TurnId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_id: Option<ActionId>,
    /// False when this very message was taken before.
    pub accepted: bool,
    /// With `refused`: why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// What became of a message at one agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PostOutcome {
    /// It starts a turn of its own.
    Turn,
    /// The agent has no turns: it takes the message as an input, and what its steps say is in the transcript.
    Delivered,
    /// It joins the agent's active turns as a note, at the next step.
    Steered,
    /// The same, and the running call of a model is cancelled; what it said is kept.
    Interrupted,
    /// It did not reach this agent.
    Refused,
}

#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct TurnView {
    #[serde(flatten)]
    pub turn: Turn,
    pub created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<String>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct TurnPage {
    pub items: Vec<TurnView>,
    pub next_cursor: Option<String>,
}

/// One turn and all that belongs to it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct TurnDetail {
    pub turn: TurnView,
    /// What it answers; absent if it was no message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<MessageView>,
    /// What it said.
    pub messages: Vec<MessageView>,
    pub moves: Vec<MoveView>,
    pub operations: Vec<OperationView>,
    /// Records of the calls of model providers.
    pub provider_calls: Vec<Value>,
    /// Its records did not fit one answer; the rest is in `GET /api/turns/{id}/moves` and the transcript.
    pub truncated: bool,
}

/// What the model was given at the start of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct TurnContext {
    pub turn_id: TurnId,
    /// When it was put together; absent until then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// The request as it is recorded: `{target, request, limits, tools, budget}`; null until then. What
    /// the turn itself said and did since is in its moves.
    pub context: Value,
}

/// One reply of a model within a turn, with the results of the tools that it called.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct MoveView {
    pub offset: u64,
    pub created_at: String,
    /// From 1; absent if its record does not say.
    #[serde(rename = "move", skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<Value>,
    pub tool_calls: Vec<Value>,
    /// In the order they came, up to 32 MiB with the reply; of work in the background those that came within four pages
    /// of records behind the page. `GET /api/operations/{id}` has each.
    pub tool_results: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish: Option<Value>,
    /// The reply as it is recorded.
    pub record: Value,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct MovePage {
    pub items: Vec<MoveView>,
    pub next_cursor: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct OperationView {
    #[serde(flatten)]
    pub operation: Operation,
    /// What a person is asked, in words: of an action of kind `human`, and about a budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    pub created_at: String,
    /// Of an approval: when its default counts. Of a running one: when its claim ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct OperationPage {
    pub items: Vec<OperationView>,
    pub next_cursor: Option<String>,
}

/// Answer to an approval or a denial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApprovalAnswer {
    pub operation_id: OperationId,
    pub approved: bool,
    pub by: String,
    /// The `tool_result` that tells the turn.
    pub action_id: ActionId,
    /// False when the same answer was given before.
    pub accepted: bool,
}
