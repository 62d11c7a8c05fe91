//! The log as a transcript: utterances, and on request all else as messages too (SPEC K-08).

use schemas::conversation::{EventType, LogKind, LogRecord, LogRow, Message, MessageRole, MessageView, SenderType};
use schemas::id::MessageId;
use serde_json::Value;

use crate::time::rfc3339;

/// What a transcript is made of.
pub const UTTERANCES: &[LogKind] = &[LogKind::Message];
/// With tool calls, tool results, summaries and what happened.
pub const EVERYTHING: &[LogKind] = &[
    LogKind::Message,
    LogKind::Move,
    LogKind::ToolResult,
    LogKind::AsyncResult,
    LogKind::Note,
    LogKind::Event,
    LogKind::Summary,
];

/// A row as a message; `None` if it is none: the reply of a model that called no tools is shown by
/// the message that it became.
pub fn message_view(row: &LogRow) -> Option<MessageView> {
    let record = &row.record;
    let message = match record.kind {
        LogKind::Message => record.body.to::<Message>().ok()?,
        LogKind::Assembly | LogKind::ProviderCall => return None,
        _ => shown(record)?,
    };
    Some(MessageView { offset: row.offset, created_at: rfc3339(record.at_ms), message })
}

fn shown(record: &LogRecord) -> Option<Message> {
    let body = record.body.to_value();
    let text_at = |name: &str| body[name].as_str().map(str::to_owned);
    let (event_type, role, text) = match record.kind {
        LogKind::Move => {
            body["tool_calls"].as_array().filter(|calls| !calls.is_empty())?;
            (EventType::ToolCall, MessageRole::Assistant, text_at("reasoning"))
        }
        LogKind::ToolResult | LogKind::AsyncResult => (EventType::ToolResult, MessageRole::Tool, result_text(&body)),
        LogKind::Summary => (EventType::Summary, MessageRole::System, text_at("text")),
        LogKind::Note => (EventType::Status, MessageRole::System, text_at("text")),
        LogKind::Event => (EventType::Status, MessageRole::Other, text_at("type")),
        LogKind::Message | LogKind::Assembly | LogKind::ProviderCall => return None,
    };
    let by_agent = record.agent_id.is_some() && event_type != EventType::Summary && event_type != EventType::Status;
    Some(Message {
        message_id: MessageId::parse(&record.id).ok()?,
        turn_id: record.turn_id.clone(),
        sender_type: if by_agent { SenderType::Agent } else { SenderType::System },
        role,
        user_id: None,
        agent_id: record.agent_id.clone(),
        session_id: record.session_id.clone(),
        name: text_at("tool"),
        text,
        content: None,
        data: Some(body),
        event_type,
        reply_to_message_id: None,
        provider_message_id: None,
        metadata: None,
        iteration: None,
        step_token: None,
        next_step_token: None,
        status: None,
        notes: None,
    })
}

/// A result or an error in words, if it is words.
fn result_text(body: &Value) -> Option<String> {
    let text = body["result"].as_str().or_else(|| body["error"]["message"].as_str()).or_else(|| body["error"].as_str());
    text.map(str::to_owned)
}
