//! One attempt at an operation: what it is given, and how it may fail.

use schemas::conversation::Operation;
use schemas::definition::EffectClass;
use schemas::id::{ConversationId, Namespace, OperationId, SessionId, TurnId};
use serde_json::Value;

use super::dispatch::ActionRequest;
use crate::chat::{ToolError, ToolErrorCode};

/// One attempt at an operation, complete: whoever runs it has no choices left.
#[derive(Debug, Clone, PartialEq)]
pub struct ActionCall {
    pub namespace: Namespace,
    pub session_id: SessionId,
    pub conversation_id: ConversationId,
    pub turn_id: TurnId,
    /// The key under which the target knows a repeat, unless the action has a template of its own.
    pub operation_id: OperationId,
    /// What the model called.
    pub tool: String,
    pub effect_class: EffectClass,
    /// Counted from 1; more than 1: an attempt before this one may have reached the target.
    pub attempt: u32,
    pub timeout_ms: u64,
    pub request: ActionRequest,
}

impl ActionCall {
    /// The attempt that an operation is at.
    pub fn new(namespace: &Namespace, operation: &Operation, request: ActionRequest) -> Self {
        Self {
            namespace: namespace.clone(),
            session_id: operation.session_id.clone(),
            conversation_id: operation.conversation_id.clone(),
            turn_id: operation.turn_id.clone(),
            operation_id: operation.operation_id.clone(),
            tool: operation.tool.clone(),
            effect_class: operation.effect_class,
            attempt: operation.attempt,
            timeout_ms: operation.timeout_ms,
            request,
        }
    }
}

/// Failures of the infrastructure, in the words of `retryable_errors`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    Network,
    Timeout,
    RateLimit,
    ServerError,
}

impl Trouble {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Timeout => "timeout",
            Self::RateLimit => "rate_limit",
            Self::ServerError => "server_error",
        }
    }
}

/// Why an attempt failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionFailure {
    /// As the model is told, if no further attempt is made.
    pub error: ToolError,
    /// Of the infrastructure: worth another attempt. Absent: the answer stands (SPEC W-ERR-06).
    pub trouble: Option<Trouble>,
    /// The target may have received it.
    pub may_have_happened: bool,
    /// Counts only where there is `trouble`: the target's own whole answer tells of it, so nothing is in doubt.
    pub reported: bool,
    /// How long the target asks to wait, milliseconds.
    pub retry_after_ms: Option<u64>,
}

impl ActionFailure {
    /// The answer stands: nothing of the infrastructure failed.
    pub fn business(code: ToolErrorCode, message: impl Into<String>) -> Self {
        let error = ToolError { code, message: message.into(), retriable: false };
        Self { error, trouble: None, may_have_happened: true, reported: false, retry_after_ms: None }
    }

    /// What is asked for cannot be done as it is.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self { may_have_happened: false, ..Self::business(ToolErrorCode::InvalidInput, message) }
    }

    /// The infrastructure failed.
    pub fn trouble(trouble: Trouble, message: impl Into<String>, may_have_happened: bool) -> Self {
        let code = match trouble {
            Trouble::Timeout => ToolErrorCode::Timeout,
            _ => ToolErrorCode::ExecutionFailed,
        };
        let error = ToolError { code, message: message.into(), retriable: true };
        Self { error, trouble: Some(trouble), may_have_happened, reported: false, retry_after_ms: None }
    }
}

/// What a target says about an attempt of which nobody heard again.
#[derive(Debug, Clone, PartialEq)]
pub enum Probe {
    /// It happened, and this came of it.
    Happened(Value),
    DidNotHappen,
    /// It cannot be asked, or does not know.
    Unknown,
}
