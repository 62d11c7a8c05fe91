//! Operations: what a turn has dispatched, until a `tool_result` action ends it (SPEC 1.18).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{LogRecord, Turn};
use crate::definition::EffectClass;
use crate::id::{ConversationId, OperationId, SessionId, TurnId};
use crate::json::Json;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Operation {
    /// Derived from the turn, the move and the call: dispatching it twice is dispatching it once.
    pub operation_id: OperationId,
    /// Gets the `tool_result`.
    pub session_id: SessionId,
    pub conversation_id: ConversationId,
    pub turn_id: TurnId,
    /// The model's id of its call.
    pub tool_call_id: String,
    /// What the model called.
    pub tool: String,
    pub kind: OperationKind,
    /// Who runs it: `default` is the fleet's own executors, any other is somebody else's workers
    /// (SPEC 3, `stepfleet.tasks.<pool>`). Empty for kinds that nobody runs.
    pub pool: String,
    pub state: OperationState,
    /// Everything that whoever runs it needs: `{target_type, target_id, version?, input, context}`.
    pub request: Json,
    /// With `approval`: what is asked, who may answer, and until when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalRequest>,
    pub effect_class: EffectClass,
    /// How often it was started.
    pub attempt: u32,
    /// Of those starts, the ones whose executor died or was stopped: up to a bound, they are no attempts of
    /// the operation's own. Set by the store.
    #[serde(default)]
    pub lost: u32,
    pub max_attempts: u32,
    pub backoff_ms: u64,
    /// Of one attempt. Of an agent: until it has answered.
    pub timeout_ms: u64,
    /// With work of others: how long it may wait for somebody who takes it, before it ends with
    /// `TIMEOUT`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// Whether the model goes on without its result.
    pub is_async: bool,
    /// Set by the store: by its clock.
    #[serde(default)]
    pub created_at_ms: i64,
    /// Not to be claimed before.
    #[serde(default)]
    pub due_at_ms: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_by: Option<String>,
    /// While `running`: when the claim ends. While waiting for approval: when the default counts. While an agent
    /// works on it: when it ends with `TIMEOUT`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OperationKind {
    /// An executor, or somebody else's worker, runs it.
    Task,
    /// Another session works on it.
    Agent,
    /// A person says yes or no.
    Approval,
}

impl OperationKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Agent => "agent",
            Self::Approval => "approval",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Task, Self::Agent, Self::Approval].into_iter().find(|k| k.as_str() == text)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OperationState {
    /// Waits for an executor, another agent, or a person.
    Pending,
    /// An executor has it.
    Running,
    Completed,
    Failed,
    /// Its turn or session ended first: results are ignored.
    Cancelled,
}

impl OperationState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Pending, Self::Running, Self::Completed, Self::Failed, Self::Cancelled]
            .into_iter()
            .find(|s| s.as_str() == text)
    }

    pub fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::Running)
    }
}

/// What a person is asked. The arguments are bound: an answer counts for exactly these.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ApprovalRequest {
    /// SHA-256 of tool and arguments, hexadecimal; an answer must repeat it.
    pub arguments_hash: String,
    /// Milliseconds from the dispatch until the default counts.
    pub expires_ms: u64,
    /// Whether silence means yes.
    pub default_approve: bool,
}

/// What one step adds to conversations: written by the commit of the step (invariant S3).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Talk {
    /// Appended to the log of the session's conversation, in this order.
    pub log: Vec<LogRecord>,
    /// Replaced, whole, by their ids.
    pub turns: Vec<Turn>,
    /// New ones are inserted; of known ones an open one takes the state given here.
    pub operations: Vec<Operation>,
}

impl Talk {
    pub fn is_empty(&self) -> bool {
        self.log.is_empty() && self.turns.is_empty() && self.operations.is_empty()
    }
}
