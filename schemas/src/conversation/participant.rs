//! Who takes part in a conversation.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::id::{AgentId, ParticipantId, SessionId, TurnId, UserId};

/// A user, or an agent with the session that speaks for it. Who leaves keeps the row (SPEC Q-CNV-12).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Participant {
    pub participant_id: ParticipantId,
    #[serde(rename = "type")]
    pub kind: ParticipantKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<UserId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    pub role: ParticipantRole,
    pub joined_at_ms: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_at_ms: Option<i64>,
    /// The turn whose agent brought this one in (SPEC W-INV-04).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added_by_turn_id: Option<TurnId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ParticipantKind {
    User,
    Agent,
}

impl ParticipantKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Agent => "agent",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::User, Self::Agent].into_iter().find(|k| k.as_str() == text)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ParticipantRole {
    Owner,
    /// Each message of a user starts a turn of it.
    Responder,
    Observer,
}

impl ParticipantRole {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Responder => "responder",
            Self::Observer => "observer",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Owner, Self::Responder, Self::Observer].into_iter().find(|r| r.as_str() == text)
    }
}
