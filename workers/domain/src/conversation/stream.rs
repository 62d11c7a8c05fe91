//! The log and the news as frames of a stream: pure, and the same for every client.

use schemas::conversation::{
    ConversationFrame, EventFrame, FRAME_VERSION, FrameBody, LogKind, LogRow, Message, MessageFrame, NoteFrame,
    RetractFrame, SummaryFrame, TokenFrame, TokenKind, ToolCallFrame, ToolResultFrame,
};
use schemas::id::{ConversationId, Epoch, MessageId, TurnId};

use crate::chat::ChatDelta;
use crate::converse;
use crate::retry::MODEL;
use crate::time::rfc3339;

/// Numbers that each owner of a shard has for its attempts at a reply.
const ATTEMPTS_MAX: u32 = 64;
const _: () = assert!(MODEL.attempts < ATTEMPTS_MAX);

/// A frame that has no place in the log.
pub fn ephemeral(conversation: &ConversationId, body: FrameBody) -> ConversationFrame {
    ConversationFrame { v: FRAME_VERSION, conversation_id: conversation.clone(), offset: None, at: None, body }
}

/// The frame of a row: one at most, so that its offset is a clean cursor.
pub fn committed(conversation: &ConversationId, row: &LogRow) -> Option<ConversationFrame> {
    let (record, body) = (&row.record, row.record.body.to_value());
    let (turn_id, agent_id) = (record.turn_id.clone(), record.agent_id.clone());
    let body = match record.kind {
        LogKind::Message => FrameBody::Message(MessageFrame { message: record.body.to::<Message>().ok()? }),
        LogKind::Move => {
            let calls = body["tool_calls"].as_array().filter(|calls| !calls.is_empty())?.clone();
            let (session_id, number) = (record.session_id.clone(), body["move"].as_u64());
            let message_id = turn_id.as_ref().zip(number).and_then(|(turn, number)| reply_id(turn, number));
            FrameBody::ToolCall(ToolCallFrame { turn_id, agent_id, session_id, number, message_id, calls })
        }
        LogKind::ToolResult => {
            FrameBody::ToolResult(ToolResultFrame { turn_id, agent_id, is_async: false, result: body })
        }
        LogKind::AsyncResult => {
            FrameBody::ToolResult(ToolResultFrame { turn_id, agent_id, is_async: true, result: body })
        }
        LogKind::Note => FrameBody::Note(NoteFrame { turn_id, note: body }),
        LogKind::Summary => FrameBody::Summary(SummaryFrame { summary: body }),
        LogKind::Event => {
            let name = body["type"].as_str()?.to_owned();
            FrameBody::Event(EventFrame { name, turn_id, agent_id, data: body })
        }
        LogKind::Assembly | LogKind::ProviderCall => return None,
    };
    let (offset, at) = (Some(row.offset), Some(rfc3339(record.at_ms)));
    Some(ConversationFrame { v: FRAME_VERSION, conversation_id: conversation.clone(), offset, at, body })
}

/// Under which the pieces of a reply are told.
fn reply_id(turn: &TurnId, number: u64) -> Option<MessageId> {
    Some(converse::message_id(turn, u32::try_from(number).ok()?))
}

/// The number under which listeners are told of the `made`th attempt (from 1) at a reply. A reply that was
/// not recorded is asked for anew by the shard's next owner, who knows nothing of what was told: so all
/// numbers of an owner are above those of the owners before.
pub fn attempt(epoch: Epoch, made: u32) -> u32 {
    let owner = u32::try_from(epoch.0.max(0)).unwrap_or(u32::MAX).min(u32::MAX / ATTEMPTS_MAX);
    owner * ATTEMPTS_MAX + made.min(ATTEMPTS_MAX - 1)
}

/// The number of the attempt after the one that this owner told of last, whatever became of that one and of the call
/// that made it. At the end of its own numbers an owner stays: those above are its successor's.
pub fn attempt_after(epoch: Epoch, last: Option<u32>) -> u32 {
    let first = attempt(epoch, 1);
    last.map_or(first, |last| last.saturating_add(1).clamp(first, attempt(epoch, u32::MAX)))
}

/// The frame of a piece of a reply; `None` if it says nothing.
pub fn token(
    turn_id: &TurnId,
    message_id: &MessageId,
    (attempt, index): (u32, u64),
    delta: ChatDelta,
) -> Option<FrameBody> {
    let part = delta.part()? as u64;
    let (kind, text, tool_call_id, name) = match delta {
        ChatDelta::Text { text, .. } => (TokenKind::Text, text, None, None),
        ChatDelta::Reasoning { text, .. } => (TokenKind::Reasoning, text, None, None),
        ChatDelta::ToolCall { id, name, arguments, .. } => (TokenKind::ToolCall, arguments, id, name),
        ChatDelta::Usage { .. } => return None,
    };
    let (turn_id, message_id) = (turn_id.clone(), message_id.clone());
    Some(FrameBody::Token(TokenFrame { turn_id, message_id, attempt, index, kind, text, part, tool_call_id, name }))
}

pub fn retract(turn_id: &TurnId, message_id: &MessageId, attempt: u32) -> FrameBody {
    FrameBody::Retract(RetractFrame { turn_id: turn_id.clone(), message_id: message_id.clone(), attempt })
}
