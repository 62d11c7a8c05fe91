//! Problem documents (RFC 9457) with a stable code; each code has a page in `ops/runbooks`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One wrong field of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldProblem {
    /// Path of the field, as in `payload.config.paths`.
    pub field: String,
    /// What is wrong and what to send instead.
    pub message: String,
}

impl FieldProblem {
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

/// The body of every error answer, `application/problem+json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// `/problems/<code>`.
    #[serde(rename = "type")]
    pub kind: String,
    pub title: String,
    pub status: u16,
    /// What happened here, and the remedy.
    pub detail: String,
    /// Stable, for programs.
    pub code: Code,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldProblem>,
    /// Set when the refusal is recorded in the ledger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_id: Option<String>,
}

// A text is a token here, not a literal: `ToSchema` does not see literals that a macro has parsed.
macro_rules! codes {
    ($($name:ident = $text:tt, $status:literal, $title:literal;)*) => {
        /// Stable codes of refusals and failures.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
        pub enum Code {
            $(#[serde(rename = $text)] $name,)*
        }

        impl Code {
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];

            pub fn as_str(self) -> &'static str {
                match self { $(Code::$name => $text,)* }
            }

            /// The HTTP status it is answered with.
            pub fn status(self) -> u16 {
                match self { $(Code::$name => $status,)* }
            }

            pub fn title(self) -> &'static str {
                match self { $(Code::$name => $title,)* }
            }

            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|code| code.as_str() == text)
            }
        }
    };
}

codes! {
    InvalidRequest = "invalid_request", 400, "The request is not valid";
    InvalidJson = "invalid_json", 400, "The body is not JSON";
    UnknownType = "unknown_type", 400, "The action type is not known";
    UnknownMoniker = "unknown_moniker", 400, "The moniker is not known";
    InputNotTaken = "input_not_taken", 409, "This moniker takes no input";
    TooLarge = "too_large", 413, "The request is too large";
    Unauthorized = "unauthorized", 401, "A valid token is needed";
    Forbidden = "forbidden", 403, "The token may not do this";
    NotFound = "not_found", 404, "There is no such thing";
    MethodNotAllowed = "method_not_allowed", 405, "The path does not take this method";
    SessionNotFound = "session_not_found", 404, "There is no such session";
    ActionNotFound = "action_not_found", 404, "There is no such action";
    AgentNotFound = "agent_not_found", 404, "The agent has no session";
    DefinitionInvalid = "definition_invalid", 422, "A definition is not valid";
    DefinitionNotFound = "definition_not_found", 404, "There is no such definition";
    WrongAgent = "wrong_agent", 409, "The session belongs to another agent";
    SessionEnded = "session_ended", 409, "The session has ended";
    SessionExists = "session_exists", 409, "The session exists already";
    ActionConflict = "action_conflict", 409, "The action id was used for something else";
    ConversationClosed = "conversation_closed", 409, "The conversation is closed";
    NoOpenOperation = "no_open_operation", 409, "No operation waits for this result";
    ConversationNotFound = "conversation_not_found", 404, "There is no such conversation";
    ConversationExists = "conversation_exists", 409, "The conversation exists already";
    ParticipantNotFound = "participant_not_found", 404, "There is no such participant";
    MessageConflict = "message_conflict", 409, "The message id was used for something else";
    AgentBusy = "agent_busy", 409, "The agent is at work";
    TurnNotFound = "turn_not_found", 404, "There is no such turn";
    TurnEnded = "turn_ended", 409, "The turn has ended";
    OperationNotFound = "operation_not_found", 404, "There is no such operation";
    ApprovalMismatch = "approval_mismatch", 409, "The approval is for other arguments";
    TooManyRequests = "too_many_requests", 429, "Too many requests";
    Unavailable = "unavailable", 503, "A service is not available";
    StorageFull = "storage_full", 507, "The disk is full";
    Internal = "internal", 500, "Something went wrong inside";
    StepFailed = "step_failed", 500, "A step failed";
    FrameInvalid = "frame_invalid", 500, "A step answered with a malformed frame";
    EffectInDoubt = "effect_in_doubt", 500, "An effect may or may not have happened";
    ProviderFailed = "provider_failed", 502, "A model provider failed";
    ProviderMissing = "provider_missing", 503, "No model provider is configured";
    ReadFailed = "read_failed", 500, "A document could not be read";
}

impl Problem {
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            kind: format!("/problems/{}", code.as_str()),
            title: code.title().to_owned(),
            status: code.status(),
            detail: detail.into(),
            code,
            errors: Vec::new(),
            action_id: None,
        }
    }

    pub fn fields(code: Code, errors: Vec<FieldProblem>) -> Self {
        let list: Vec<String> = errors.iter().map(|e| format!("{}: {}", e.field, e.message)).collect();
        Self { errors, ..Self::new(code, list.join("; ")) }
    }
}
