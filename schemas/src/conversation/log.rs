//! The log of a conversation: one numbering for everything that happened in it. Transcripts, streams
//! and the context of a turn are all read from it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::id::{AgentId, SessionId, TurnId};
use crate::json::Json;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogKind {
    /// Something said: the body is a [`super::Message`].
    Message,
    /// The request that a turn starts from, or goes on from where it is made anew: `{target, request, limits,
    /// tools, history, …}`.
    Assembly,
    /// One recorded reply of a model: `{move, reasoning, tool_calls, parts, finish, cut?, raw}`.
    Move,
    /// The end of a tool call that its reply waited for: a tool result with `move`.
    ToolResult,
    /// The end of work that the turn did not wait for: a tool result with `operation_id` and `tool`.
    AsyncResult,
    /// Guidance and notices for the model, in words and pictures: `{text, content?, message_id?, from}`.
    Note,
    /// The record of one call of a provider (SPEC C-PRV-08).
    ProviderCall,
    /// What happened, by its name (SPEC K-30): `{type, ...}`, as in `turn.failed`.
    Event,
    /// Older messages up to an offset are out of the agent's context: `{upto, text, batches, forget?}`. With
    /// `scope: "turn"`, replies of the turn up to a move.
    Summary,
}

impl LogKind {
    pub const ALL: [LogKind; 9] = [
        Self::Message,
        Self::Assembly,
        Self::Move,
        Self::ToolResult,
        Self::AsyncResult,
        Self::Note,
        Self::ProviderCall,
        Self::Event,
        Self::Summary,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Assembly => "assembly",
            Self::Move => "move",
            Self::ToolResult => "tool_result",
            Self::AsyncResult => "async_result",
            Self::Note => "note",
            Self::ProviderCall => "provider_call",
            Self::Event => "event",
            Self::Summary => "summary",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// A record before it has its place. Its id is unique within the conversation and derived from what
/// caused it, so that writing it twice is writing it once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogRecord {
    pub kind: LogKind,
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<TurnId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    pub at_ms: i64,
    pub body: Json,
}

/// A record at its place: offsets start at 1 and have no gaps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogRow {
    pub offset: u64,
    #[serde(flatten)]
    pub record: LogRecord,
}
