//! What clients send about conversations. The gateway reads bodies field by field, so that it can
//! name every wrong one (`domain::conversation`); clients may serialise these.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{ConversationStatus, MessageRole, ParticipantRole, Visibility};
use crate::id::{AgentId, ConversationId, MessageId, ParticipantId, SessionId, TurnId, UserId};

/// Body of `POST /api/conversations`. All of it may be left out.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewConversationBody {
    /// Also the idempotency key. A fresh one is made if it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<ConversationId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Who creates it, and becomes its owner; the name of the token unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<UserId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject_id: Option<String>,
    /// One of `agents`; the first of them unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary_agent_id: Option<AgentId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// An object such as `{repo_id, branch}`; unless given, `{project_id, branch, base}` by the first project of the
    /// first agent who is defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch_context: Option<Map<String, Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visibility: Option<Visibility>,
    /// Each of them gets a session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentSeat>,
    /// Users besides the one who creates it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<UserSeat>,
    /// What was said before; it starts no turns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<FirstMessage>,
}

/// An agent that takes part, with a session of its own.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentSeat {
    pub agent_id: AgentId,
    /// `responder` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<ParticipantRole>,
    /// What its session runs; `converse` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moniker: Option<String>,
    /// The settings of its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Map<String, Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UserSeat {
    pub user_id: UserId,
    /// `observer` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<ParticipantRole>,
}

/// A message that a conversation begins with.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FirstMessage {
    /// `system` or `user`.
    pub role: MessageRole,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Texts and images, instead of `text`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Vec<Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<UserId>,
}

/// Body of `PATCH /api/conversations/{id}`: what is given replaces what is there.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConversationPatch {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// `completed`: nothing is said in it any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ConversationStatus>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch_context: Option<Map<String, Value>>,
}

/// Body of `POST …/participants`: a user, an agent that gets a session, or an agent with one that
/// is bound to the conversation already.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JoinBody {
    /// Also the idempotency key. A fresh one is made if it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub participant_id: Option<ParticipantId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<UserId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<ParticipantRole>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moniker: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Map<String, Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
}

/// Body of `POST …/messages`: `text`, or `content` with texts and images.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub struct PostBody {
    /// Also the idempotency key. A fresh one is made if it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Vec<Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// Who says it; the name of the token unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<UserId>,
    /// Ids of the agents, or of their participants, that should answer; unless given, the author of
    /// the message that is replied to, else every responder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to_message_id: Option<MessageId>,
    /// What becomes of it at an agent with active turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<Busy>,
}

/// What becomes of a message for an agent that is at work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Busy {
    /// A turn of its own, beside the active ones.
    #[default]
    Enqueue,
    /// A note for the active turns, at the next step.
    Steer,
    /// The same, at once: the running call of a model is cancelled.
    Interrupt,
    /// The message is not taken.
    Reject,
}

impl Busy {
    pub const ALL: [Busy; 4] = [Self::Enqueue, Self::Steer, Self::Interrupt, Self::Reject];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Enqueue => "enqueue",
            Self::Steer => "steer",
            Self::Interrupt => "interrupt",
            Self::Reject => "reject",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|busy| busy.as_str() == text)
    }
}

/// Body of `POST /api/operations/{id}/{approve|deny}`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalBody {
    /// As the operation has it: the answer counts for exactly these arguments.
    pub arguments_hash: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// With a yes to a question of an action of kind `human`: what the agent gets as the result of its call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
    /// Who answers; the name of the token unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
}

/// What a client may send over the WebSocket of a conversation.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ClientFrame {
    Message(Box<ClientMessage>),
    CancelTurn(ClientCancel),
}

/// The fields of `POST …/messages`, and an `id` that the answer repeats.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ClientMessage {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(flatten)]
    pub message: PostBody,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ClientCancel {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    pub turn_id: TurnId,
}
