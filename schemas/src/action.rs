//! Actions: commands on the queue (SPEC 1.2). The ledger row and the queue message are one shape.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::id::{ActionId, AgentId, ConversationId, Namespace, SessionId, SessionKey, Shard};
use crate::json::Json;
use crate::problem::Code;
use crate::session::SessionSpec;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActionType {
    Create,
    Input,
    Interrupt,
    Pause,
    Resume,
    Destroy,
    ToolResult,
}

impl ActionType {
    pub const ALL: [ActionType; 7] =
        [Self::Create, Self::Input, Self::Interrupt, Self::Pause, Self::Resume, Self::Destroy, Self::ToolResult];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Input => "input",
            Self::Interrupt => "interrupt",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Destroy => "destroy",
            Self::ToolResult => "tool_result",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// Operators' commands travel apart, so that a pause never waits behind a backlog (DESIGN 3).
    pub fn lane(self) -> Lane {
        match self {
            Self::Pause | Self::Resume | Self::Interrupt | Self::Destroy => Lane::Control,
            Self::Create | Self::Input | Self::ToolResult => Lane::Work,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Lane {
    Control,
    Work,
}

impl Lane {
    pub const ALL: [Lane; 2] = [Lane::Control, Lane::Work];

    pub fn as_str(self) -> &'static str {
        match self {
            Lane::Control => "control",
            Lane::Work => "work",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|lane| lane.as_str() == text)
    }
}

/// Kept and shown; orders nothing within a session (SPEC Q-ACT-01, Q-ACT-11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Urgency {
    Low,
    #[default]
    Normal,
    High,
}

impl Urgency {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Normal => "normal",
            Self::High => "high",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Low, Self::Normal, Self::High].into_iter().find(|u| u.as_str() == text)
    }
}

/// A validated action that is not accepted yet. Made by `domain::action::parse`.
#[derive(Debug, Clone)]
pub struct NewAction {
    pub namespace: Namespace,
    pub action_id: ActionId,
    pub kind: ActionType,
    /// For `create`: the id of the new session. For others: the target, unless only the agent is named.
    pub session_id: Option<SessionId>,
    /// Control by agent goes to its newest session (SPEC Q-SES-05).
    pub agent_id: Option<AgentId>,
    pub urgency: Urgency,
    pub actor: String,
    pub payload: Json,
    pub metadata: Json,
    /// SHA-256 over what the caller sent, canonical; tells a repeat from a conflict.
    pub body_hash: [u8; 32],
    /// Set for `create` only.
    pub session: Option<crate::session::NewSession>,
    /// Of what is for an agent that is looped in: the conversation where it may sit already. If the session that is
    /// named is not there, and the agent has a seat that can be asked, the session of that seat is meant, and a
    /// `create` makes no other.
    pub seat: Option<ConversationId>,
}

/// An accepted action: what the queue carries, whole, and what the worker admits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Action {
    pub namespace: Namespace,
    pub action_id: ActionId,
    #[serde(rename = "type")]
    pub kind: ActionType,
    pub session_id: SessionId,
    pub agent_id: AgentId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<ConversationId>,
    pub shard: Shard,
    /// Position in its session's lane: 1, 2, 3 … without gaps.
    pub session_seq: u64,
    pub urgency: Urgency,
    pub actor: String,
    pub payload: Json,
    pub metadata: Json,
    pub accepted_at_ms: i64,
    /// Of a `create` that has just registered its session: what that is, so that its owner need not read it.
    /// Absent from what is read from the ledger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opens: Option<Box<SessionSpec>>,
}

impl Action {
    pub fn lane(&self) -> Lane {
        self.kind.lane()
    }

    pub fn key(&self) -> SessionKey {
        SessionKey::new(self.namespace.clone(), self.session_id.clone())
    }
}

/// How an action ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActionOutcome {
    Ok,
    Error,
    Rejected,
    DeadLetter,
}

impl ActionOutcome {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Rejected => "rejected",
            Self::DeadLetter => "dead_letter",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Ok, Self::Error, Self::Rejected, Self::DeadLetter].into_iter().find(|o| o.as_str() == text)
    }
}

/// A ledger row as clients read it.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ActionView {
    pub action_id: ActionId,
    #[serde(rename = "type")]
    pub kind: ActionType,
    /// Absent when the action was refused before a session was found.
    pub session_id: Option<SessionId>,
    pub agent_id: Option<AgentId>,
    pub shard: Option<Shard>,
    pub lane: Lane,
    pub session_seq: Option<u64>,
    pub urgency: Urgency,
    pub actor: String,
    pub payload: Json,
    pub metadata: Json,
    pub created_at: String,
    pub published_at: Option<String>,
    pub processed: bool,
    pub processed_at: Option<String>,
    pub outcome: Option<ActionOutcome>,
    /// A stable code for a refusal or failure.
    pub code: Option<Code>,
    pub error: Option<String>,
}
