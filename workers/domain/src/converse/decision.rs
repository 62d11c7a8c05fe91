//! What planning decides, under the names of SPEC W-DEC-02. Dispatching is separate: see `apply`. Three of
//! the names are not decided here: `WRITE_MEMORY` and `UPDATE_MEMORY` (tools and extraction write memories,
//! as effects of their own) and `DISPATCH_WORKFLOW` (there are no workflows; calls are refused).

use schemas::conversation::{Message, Operation, Turn, TurnError, TurnPhase};
use schemas::id::{OperationId, TurnId};

use super::agents::AgentCall;
use super::state::{Open, ReplyTo, SpentTo};
use crate::chat::ToolResult;

#[derive(Debug, Clone, PartialEq)]
pub enum TurnDecision {
    StartTurn {
        turn: Box<Turn>,
        reply_to: Option<ReplyTo>,
        spent_to: Option<Box<SpentTo>>,
        /// How many agents have called one another up to it, if its input says so.
        depth: u64,
    },
    /// It has responded and nothing is pending.
    CompleteTurn {
        turn_id: TurnId,
    },
    FailTurn {
        turn_id: TurnId,
        error: TurnError,
        cancelled: bool,
    },
    AppendMessage {
        turn_id: TurnId,
        message: Box<Message>,
    },
    DispatchTask {
        turn_id: TurnId,
        operation: Box<Operation>,
        is_async: bool,
    },
    DispatchAgent {
        turn_id: TurnId,
        call: Box<AgentCall>,
    },
    /// Its result comes later, to this very turn.
    TrackAsyncOperation {
        turn_id: TurnId,
        operation_id: OperationId,
    },
    AsyncOperationCompleted {
        turn_id: TurnId,
        operation_id: OperationId,
        result: Box<ToolResult>,
    },
    MarkWaiting {
        turn_id: TurnId,
        phase: TurnPhase,
    },
    /// Its model is asked (again).
    ResumeFromTool {
        turn_id: TurnId,
    },
    /// A person is asked before `open` is done.
    AskApproval {
        turn_id: TurnId,
        operation: Box<Operation>,
        open: Box<Open>,
    },
}

impl TurnDecision {
    /// The name of the seed.
    pub fn name(&self) -> &'static str {
        match self {
            Self::StartTurn { .. } => "START_TURN",
            Self::CompleteTurn { .. } => "COMPLETE_TURN",
            Self::FailTurn { .. } => "FAIL_TURN",
            Self::AppendMessage { .. } => "APPEND_MESSAGE",
            Self::DispatchTask { .. } => "DISPATCH_TASK",
            Self::DispatchAgent { .. } => "DISPATCH_AGENT",
            Self::TrackAsyncOperation { .. } | Self::AskApproval { .. } => "TRACK_ASYNC_OPERATION",
            Self::AsyncOperationCompleted { .. } => "ASYNC_OPERATION_COMPLETED",
            Self::MarkWaiting { .. } => "MARK_WAITING",
            Self::ResumeFromTool { .. } => "RESUME_FROM_TOOL",
        }
    }
}
