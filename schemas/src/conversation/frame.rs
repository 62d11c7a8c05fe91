//! Frames of a conversation's stream, version 1 (`docs/streams.md`). What is committed has an
//! `offset`; whatever has none is ephemeral, and nothing that counts is in it alone.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{ConversationStatus, Message, PostAnswer, TurnView};
use crate::id::{AgentId, ConversationId, MessageId, SessionId, TurnId};
use crate::problem::Problem;

/// Grows when a client that knows the old form would read the new one wrong. New types of frames
/// and new fields do not: clients pass over what they do not know.
pub const FRAME_VERSION: u32 = 1;

/// One frame.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ConversationFrame {
    /// Version of the format: 1.
    pub v: u32,
    pub conversation_id: ConversationId,
    /// Place in the log of the conversation, and the cursor to come back with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// When it was committed, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    #[serde(flatten)]
    pub body: FrameBody,
}

#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FrameBody {
    Token(TokenFrame),
    Retract(RetractFrame),
    Message(MessageFrame),
    ToolCall(ToolCallFrame),
    ToolResult(ToolResultFrame),
    Note(NoteFrame),
    Summary(SummaryFrame),
    Event(EventFrame),
    Turn(TurnFrame),
    Status(StatusFrame),
    Lag(LagFrame),
    Answer(AnswerFrame),
    End(EndFrame),
}

impl FrameBody {
    /// The value of `type`, and the name of the server-sent event.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Token(_) => "token",
            Self::Retract(_) => "retract",
            Self::Message(_) => "message",
            Self::ToolCall(_) => "tool_call",
            Self::ToolResult(_) => "tool_result",
            Self::Note(_) => "note",
            Self::Summary(_) => "summary",
            Self::Event(_) => "event",
            Self::Turn(_) => "turn",
            Self::Status(_) => "status",
            Self::Lag(_) => "lag",
            Self::Answer(_) => "answer",
            Self::End(_) => "end",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TokenKind {
    Text,
    Reasoning,
    /// A piece of a call's arguments, as JSON text.
    ToolCall,
}

/// A piece of a reply as the model says it. Ephemeral: the committed message has the whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct TokenFrame {
    pub turn_id: TurnId,
    /// The message it will be part of, if the attempt lives.
    pub message_id: MessageId,
    /// A higher one voids all that lower ones said.
    pub attempt: u32,
    /// Grows within an attempt.
    pub index: u64,
    pub kind: TokenKind,
    pub text: String,
    /// Which part of the reply it belongs to.
    pub part: u64,
    /// With the first piece of a tool call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// The attempt is dead: forget what it said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct RetractFrame {
    pub turn_id: TurnId,
    pub message_id: MessageId,
    pub attempt: u32,
}

/// Something said, whole.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct MessageFrame {
    pub message: Message,
}

/// The tool calls of one reply of a model.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ToolCallFrame {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<TurnId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Which reply of the turn.
    #[serde(rename = "move", skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// What its pieces were told under, and what a text that it said besides is told under.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// `{id, name, input}` each.
    pub calls: Vec<Value>,
}

/// How a tool call or a dispatched operation ended.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ToolResultFrame {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<TurnId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Whether the turn went on without it.
    pub is_async: bool,
    /// `{tool_call_id, success, result | error, …}`.
    pub result: Value,
}

/// Guidance that a turn was given.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct NoteFrame {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<TurnId>,
    /// `{text, content?, message_id?, from}`.
    pub note: Value,
}

/// Older messages are out of the model's context; this stands for them. Readers still have them.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct SummaryFrame {
    /// `{upto, text, …}`.
    pub summary: Value,
}

/// What happened, by its name.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct EventFrame {
    /// As in `conversation_started` or `turn.failed`.
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<TurnId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    pub data: Value,
}

/// How a turn stands now. A state, not history: of several changes the last one may come alone.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct TurnFrame {
    pub turn: TurnView,
}

/// How the conversation stands now. The first frame of every stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct StatusFrame {
    pub status: ConversationStatus,
    /// Up to where its log is written.
    pub last_offset: u64,
}

/// Pieces were left out: forget all that is not committed. What follows is whole again; `cursor` is
/// the last committed offset that was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct LagFrame {
    pub cursor: u64,
}

/// The answer to what the client sent over its WebSocket.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct AnswerFrame {
    /// The `id` that the client gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// To a `message`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub posted: Option<PostAnswer>,
    /// To a `cancel_turn`: the action that will cancel it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<crate::api::AcceptedBody>,
    /// Or why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
}

/// The conversation is closed, and nothing of it is under way: nothing follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct EndFrame {
    pub cursor: u64,
}
