//! Records of history: what a commit adds to the journal, and what LanceDB keeps for good.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::event::EventRecord;
use crate::frame::StepToken;
use crate::id::{AgentId, ConversationId, SessionKey, Shard, TurnId};
use crate::json::Json;
use crate::session::Head;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    Ok,
    Error,
    Info,
}

impl StepStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Info => "info",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Ok, Self::Error, Self::Info].into_iter().find(|s| s.as_str() == text)
    }
}

/// One committed step. Its id is `<session>:<iteration>:<event_seq>`, so a repeat is visible.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepRecord {
    pub iteration: u64,
    /// Position among the events of its session.
    pub offset: u64,
    pub created_at_ms: i64,
    /// The turn that it was about, if it is one of a conversation and was about one turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<TurnId>,
    pub step_token: StepToken,
    pub next_step_token: StepToken,
    pub status: StepStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Json>,
    pub state: Json,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guidance: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    pub latency_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What one commit of one session adds to history: the body of one journal row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    pub agent_id: AgentId,
    pub moniker: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<ConversationId>,
    /// The session's head after this commit.
    pub head: Head,
    /// The state after this commit: the snapshot that a resume starts from.
    pub state: Json,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepRecord>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventRecord>,
}

/// A journal row: an entry at its place. Within a shard, `seq` order is commit order.
#[derive(Debug, Clone, PartialEq)]
pub struct JournalRow {
    pub shard: Shard,
    pub seq: u64,
    pub key: SessionKey,
    pub committed_at_ms: i64,
    pub entry: Entry,
}

/// A step with its session, as readers get it from journal or archive.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredStep {
    pub key: SessionKey,
    pub agent_id: AgentId,
    pub conversation_id: Option<ConversationId>,
    pub step: StepRecord,
}

/// The snapshot a session resumes from (a row of `agent_state`).
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    pub key: SessionKey,
    pub agent_id: AgentId,
    pub moniker: String,
    pub conversation_id: Option<ConversationId>,
    pub head: Head,
    pub state: Json,
    /// `text`, else `data`, of the last step.
    pub result: Option<Json>,
}
