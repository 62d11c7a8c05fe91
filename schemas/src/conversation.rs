//! Conversations: who talks, what was said, and the work that it caused (SPEC 1.12 to 1.14, 1.18).

mod body;
mod frame;
mod log;
mod message;
mod operation;
mod participant;
mod turn;
mod view;

pub use body::{
    AgentSeat, ApprovalBody, Busy, ClientCancel, ClientFrame, ClientMessage, ConversationPatch, FirstMessage, JoinBody,
    NewConversationBody, PostBody, UserSeat,
};
pub use frame::{
    AnswerFrame, ConversationFrame, EndFrame, EventFrame, FRAME_VERSION, FrameBody, LagFrame, MessageFrame, NoteFrame,
    RetractFrame, StatusFrame, SummaryFrame, TokenFrame, TokenKind, ToolCallFrame, ToolResultFrame, TurnFrame,
};
pub use log::{LogKind, LogRecord, LogRow};
pub use message::{EventType, Message, MessageRole, SenderType};
pub use operation::{ApprovalRequest, Operation, OperationKind, OperationState, Talk};
pub use participant::{Participant, ParticipantKind, ParticipantRole};
use serde::{Deserialize, Serialize};
pub use turn::{Caller, Turn, TurnError, TurnIssues, TurnPhase, TurnStatus, TurnUsage};
use utoipa::ToSchema;
pub use view::{
    ApprovalAnswer, ConversationCreated, ConversationDetail, ConversationPage, ConversationView, JoinAnswer,
    MessagePage, MessageView, MovePage, MoveView, OperationPage, OperationView, ParticipantPage, ParticipantView,
    PostAnswer, PostOutcome, Responder, StartedAgent, TurnContext, TurnDetail, TurnPage, TurnView,
};

use crate::id::{AgentId, ConversationId};
use crate::json::Json;

/// A collaboration space of users and agents. Stays open until somebody completes it (SPEC W-CNV-06).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Conversation {
    pub conversation_id: ConversationId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    pub created_by: String,
    /// What it is about, in the ids of the application.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject_id: Option<String>,
    /// Answers unless a message says who should.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary_agent_id: Option<AgentId>,
    pub status: ConversationStatus,
    #[serde(default)]
    pub tags: Vec<String>,
    /// An object; ours is not to read it.
    pub metadata: Json,
    /// Where its agents work (SPEC W-BR-01): as the client said, or `{project_id, branch, base}` by the first project
    /// of the first agent who is defined. Nothing is made in any repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch_context: Option<Json>,
    pub visibility: Visibility,
    /// Offset of the last record of its log; 0 if it has none.
    pub last_offset: u64,
    pub created_at_ms: i64,
    pub updated_at_ms: i64,
}

/// `waiting` is never stored: it is `active` with open turns none of which can run (SPEC K-06).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConversationStatus {
    Active,
    Waiting,
    Completed,
    Failed,
}

impl ConversationStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Waiting => "waiting",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Active, Self::Waiting, Self::Completed, Self::Failed].into_iter().find(|s| s.as_str() == text)
    }
}

/// Delegated work happens in conversations that no list shows (SPEC K-19).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Visibility {
    #[default]
    Listed,
    Internal,
}

impl Visibility {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Listed => "listed",
            Self::Internal => "internal",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Listed, Self::Internal].into_iter().find(|v| v.as_str() == text)
    }
}

#[cfg(test)]
mod tests;
