//! What planning decides, under the names of SPEC W-DEC-02. Dispatching is separate: see `apply`. Memories are written
//! by tools and by the extraction behind a turn: whoever decides on one of these decides on that.

use schemas::conversation::{Message, Operation, Turn, TurnError, TurnPhase};
use schemas::definition::ActionKind;
use schemas::id::{OperationId, TurnId};
use serde::Deserialize;
use serde_json::Value;

use super::agents::AgentCall;
use super::state::{Open, ReplyTo, SpentTo};
use crate::chat::ToolResult;

/// `DISPATCH_WORKFLOW` is decided by nobody yet: there are no workflows, and calls of them are refused.
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
        /// Of the reply that called it, where that is known.
        number: Option<u32>,
        /// It may ask a model.
        asks_model: bool,
    },
    DispatchAgent {
        turn_id: TurnId,
        call: Box<AgentCall>,
        /// Of the reply that called it, where that is known.
        number: Option<u32>,
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
    /// What is worth remembering of a turn that has completed is written down.
    WriteMemory {
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
    /// Its name in the seed.
    pub fn name(&self) -> &'static str {
        match self {
            Self::StartTurn { .. } => "START_TURN",
            Self::CompleteTurn { .. } => "COMPLETE_TURN",
            Self::FailTurn { .. } => "FAIL_TURN",
            Self::AppendMessage { .. } => "APPEND_MESSAGE",
            Self::DispatchTask { operation, .. } => name_of(operation),
            Self::WriteMemory { .. } => "WRITE_MEMORY",
            Self::DispatchAgent { .. } => "DISPATCH_AGENT",
            Self::TrackAsyncOperation { .. } | Self::AskApproval { .. } => "TRACK_ASYNC_OPERATION",
            Self::AsyncOperationCompleted { .. } => "ASYNC_OPERATION_COMPLETED",
            Self::MarkWaiting { .. } => "MARK_WAITING",
            Self::ResumeFromTool { .. } => "RESUME_FROM_TOOL",
        }
    }
}

/// A task that writes memories is that decision. Where it names the memory, one of that name is changed.
fn name_of(operation: &Operation) -> &'static str {
    #[derive(Deserialize)]
    struct Request {
        kind: ActionKind,
        operation: String,
    }
    #[derive(Deserialize)]
    struct Given {
        #[serde(default)]
        input: Value,
    }
    let is_write = |request: Request| request.kind == ActionKind::Memory && request.operation == "write";
    if !operation.request.to().is_ok_and(is_write) {
        return "DISPATCH_TASK";
    }
    let names = |given: Given| ["id", "label"].iter().any(|name| given.input.get(name).is_some_and(|id| !id.is_null()));
    if operation.request.to().is_ok_and(names) { "UPDATE_MEMORY" } else { "WRITE_MEMORY" }
}
