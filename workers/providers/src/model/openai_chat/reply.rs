//! A chat completion as a reply.

use domain::chat::{ChatReply, Finish, Part, Reasoning, made_id};
use serde_json::Value;

use crate::call::CallError;
use crate::config::Vendor;
use crate::model::openai_usage::CHAT;
use crate::model::order::Order;
use crate::model::{Reading, declined, failure, json as helper, lacking};

const VENDOR: Vendor = Vendor::Openai;

/// The parts that a message has, whatever their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    Reasoning,
    Text,
    Refusal,
    /// By position in `tool_calls`.
    Tool(usize),
}

pub fn read(body: Value, reading: Reading<'_>) -> Result<ChatReply, CallError> {
    if !body["error"].is_null() && !body["choices"].is_array() {
        return Err(failure::in_stream(VENDOR, &body));
    }
    read_completion(body, reading.call_id, &Order::default())
}

/// `order` is that in which a stream told of the parts.
pub fn read_completion(body: Value, call_id: &str, order: &Order<Key>) -> Result<ChatReply, CallError> {
    let Some(choice) = body["choices"].get(0) else { return Err(lacking(VENDOR, "choices")) };
    let message = &choice["message"];
    if !message.is_object() {
        return Err(lacking(VENDOR, "message"));
    }
    let raw_finish = helper::text(choice, "finish_reason").map(str::to_owned);
    let refused = helper::text(message, "refusal").is_some();
    let is_cut = matches!(raw_finish.as_deref(), Some("length" | "content_filter"));
    let parts = order.sort(parts(message, call_id, is_cut));
    let called = parts.iter().any(|part| matches!(part, Part::ToolCall(_)));
    let finish = match raw_finish.as_deref() {
        _ if refused => Finish::Refusal,
        // A call that was demanded ends with `stop`, and some servers always say so.
        Some("stop" | "tool_calls" | "function_call") if called => Finish::ToolUse,
        Some("stop" | "tool_calls" | "function_call") => Finish::Stop,
        Some("length") => Finish::Length,
        Some("content_filter") => Finish::Refusal,
        _ => Finish::Other,
    };
    let said = parts.iter().any(|part| !matches!(part, Part::Reasoning(_)));
    if !said && finish == Finish::Refusal {
        return Err(declined(VENDOR, "content_filter"));
    }
    Ok(ChatReply {
        parts,
        finish,
        raw_finish,
        usage: CHAT.read(&body["usage"]).or_else(|| CHAT.read(&body["x_groq"]["usage"])),
        provider: VENDOR.as_str().to_owned(),
        model: body["model"].as_str().unwrap_or_default().to_owned(),
        message_id: helper::text(&body, "id").map(str::to_owned),
        request_id: None,
        raw: body,
    })
}

/// `is_cut`: there may have been more of the last call.
fn parts(message: &Value, call_id: &str, is_cut: bool) -> Vec<(Key, Part)> {
    let mut parts = Vec::new();
    if let Some(text) = helper::text(message, "reasoning_content").or(helper::text(message, "reasoning")) {
        let (text, provider) = (text.to_owned(), VENDOR.as_str().to_owned());
        parts.push((Key::Reasoning, Part::Reasoning(Reasoning { text, signature: None, id: None, provider })));
    }
    let text = content_text(&message["content"]);
    if !text.is_empty() {
        parts.push((Key::Text, Part::text(text)));
    }
    if let Some(text) = helper::text(message, "refusal") {
        parts.push((Key::Refusal, Part::text(text)));
    }
    let calls = message["tool_calls"].as_array().map_or(&[][..], Vec::as_slice);
    // The older form of one call.
    let single = message["function_call"].is_object().then(|| &message["function_call"]);
    let calls = calls.iter().map(|call| (call, &call["function"])).chain(single.map(|call| (call, call)));
    let calls: Vec<(&Value, &Value)> = calls.collect();
    for (number, (call, function)) in calls.iter().enumerate() {
        let id = helper::text(call, "id").map_or_else(|| made_id(call_id, number), str::to_owned);
        let name = function["name"].as_str().unwrap_or_default();
        let arguments = match &function["arguments"] {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            // Some servers send the object itself.
            other => other.to_string(),
        };
        let is_last = is_cut && number + 1 == calls.len();
        let read = if is_last { helper::last_call } else { helper::tool_call };
        let call = read(id, name, &arguments);
        parts.push((Key::Tool(number), Part::ToolCall(call)));
    }
    parts
}

/// Content is a text, or on some servers a list of parts.
pub fn content_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}
