//! Turns: one input, the work that it causes, and zero or more responses (SPEC 1.13).

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::id::{AgentId, ConversationId, MessageId, SessionId, TurnId, UserId};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Turn {
    pub turn_id: TurnId,
    pub conversation_id: ConversationId,
    pub session_id: SessionId,
    pub agent_id: AgentId,
    pub caller: Caller,
    pub input_message_id: MessageId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to_message_id: Option<MessageId>,
    /// `user_message`, `agent_call`, `workflow_call` or `system_trigger`.
    pub trigger_type: String,
    pub status: TurnStatus,
    pub phase: TurnPhase,
    /// Ended by somebody rather than by itself; its status is then `failed` (SPEC K-02).
    #[serde(default)]
    pub cancelled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_assembly_run_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_extraction_run_id: Option<String>,
    #[serde(default, skip_serializing_if = "TurnIssues::is_empty")]
    pub issues: TurnIssues,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TurnError>,
    /// Recorded replies of the model.
    #[serde(default)]
    pub moves: u32,
    #[serde(default)]
    pub usage: TurnUsage,
    /// Operations that are dispatched and not ended.
    #[serde(default)]
    pub pending_operations: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
    pub created_at_ms: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at_ms: Option<i64>,
}

/// Who asked (SPEC W-TRN-03).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Caller {
    User { user_id: UserId },
    Workflow { run_id: String },
    Agent { agent_id: AgentId, turn_id: TurnId },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    Active,
    Completed,
    Failed,
}

impl TurnStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Active, Self::Completed, Self::Failed].into_iter().find(|s| s.as_str() == text)
    }
}

/// Where an active turn stands (SPEC K-02); of an ended one, where it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnPhase {
    Queued,
    Assembling,
    Thinking,
    WaitingTool,
    WaitingAgent,
    WaitingAsync,
    WaitingApproval,
    Responding,
}

impl TurnPhase {
    /// Waits for somebody else: nothing of it can run now.
    pub fn is_waiting(self) -> bool {
        matches!(self, Self::WaitingTool | Self::WaitingAgent | Self::WaitingAsync | Self::WaitingApproval)
    }
}

/// What went wrong without failing the turn (SPEC W-TRN-08).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TurnIssues {
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub memory_extraction_failed: bool,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tool_failures: u32,
    /// The response was cut short by the bound on tokens, or ended for a reason that is not known (SPEC K-36).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub response_cut: bool,
    /// The bound on moves was reached.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub moves_exhausted: bool,
}

impl TurnIssues {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TurnError {
    pub code: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
}

/// What a turn has used, with the turns of agents it called.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TurnUsage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// In the currency of the model profiles; only calls whose price is known count.
    pub cost: f64,
}
