//! A GenerateContentResponse as a reply.

use domain::chat::{ChatDelta, ChatReply, Finish, Part, Reasoning, ToolCall, Usage, made_id};
use serde_json::{Value, json};

use crate::call::CallError;
use crate::config::Vendor;
use crate::model::{Reading, ReplyStream as _, declined, failure, json as helper, lacking};
use crate::sse::Event;

const VENDOR: Vendor = Vendor::Gemini;

pub fn read(body: Value, reading: Reading<'_>) -> Result<ChatReply, CallError> {
    // A proxy may answer with the stream as one list.
    if let Value::Array(chunks) = &body
        && chunks.iter().all(|chunk| chunk["error"].is_null())
    {
        return read_list(chunks, reading);
    }
    if !body["error"].is_null() || body.is_array() {
        return Err(failure::in_stream(VENDOR, &body));
    }
    read_response(body, reading.call_id)
}

fn read_list(chunks: &[Value], reading: Reading<'_>) -> Result<ChatReply, CallError> {
    let (mut stream, mut deltas) = (Box::new(super::stream::Stream::new(reading)), Vec::<ChatDelta>::new());
    for chunk in chunks {
        stream.event(&Event { name: String::new(), data: chunk.to_string() }, &mut deltas)?;
    }
    stream.finish()
}

pub fn read_response(body: Value, call_id: &str) -> Result<ChatReply, CallError> {
    if let Some(reason) = blocked(&body) {
        return Err(declined(VENDOR, &format!("the prompt was blocked: {reason}")));
    }
    let Some(candidate) = body["candidates"].get(0) else { return Err(lacking(VENDOR, "candidates")) };
    let mut calls = 0;
    let given = candidate["content"]["parts"].as_array().map_or(&[][..], Vec::as_slice);
    let parts: Vec<Part> = given.iter().map(|given| part(given, call_id, &mut calls)).collect();
    let raw_finish = helper::text(candidate, "finishReason").map(str::to_owned);
    let finish = match raw_finish.as_deref() {
        Some("STOP") if calls > 0 => Finish::ToolUse,
        Some("STOP") => Finish::Stop,
        Some("MAX_TOKENS") => Finish::Length,
        Some("SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII") => Finish::Refusal,
        Some(reason) if reason.starts_with("IMAGE_") => Finish::Refusal,
        // Malformed and unexpected function calls, among others.
        _ => Finish::Other,
    };
    let reply = ChatReply {
        parts,
        finish,
        usage: usage(&body["usageMetadata"]),
        provider: VENDOR.as_str().to_owned(),
        model: body["modelVersion"].as_str().unwrap_or_default().to_owned(),
        message_id: helper::text(&body, "responseId").map(str::to_owned),
        request_id: None,
        raw_finish,
        raw: body,
    };
    if finish == Finish::Refusal && reply.text().is_empty() {
        return Err(declined(VENDOR, reply.raw_finish.as_deref().unwrap_or_default()));
    }
    Ok(reply)
}

/// Why a prompt was not let through.
pub fn blocked(body: &Value) -> Option<&str> {
    helper::text(&body["promptFeedback"], "blockReason").filter(|reason| *reason != "BLOCK_REASON_UNSPECIFIED")
}

/// Each part of theirs is one of ours. `calls` counts function calls.
pub fn part(given: &Value, call_id: &str, calls: &mut usize) -> Part {
    let provider = || VENDOR.as_str().to_owned();
    let signature = helper::text(given, "thoughtSignature").map(str::to_owned);
    if let Some(call) = given.get("functionCall").filter(|call| call.is_object()) {
        let id = helper::text(call, "id").map_or_else(|| made_id(call_id, *calls), str::to_owned);
        *calls += 1;
        let (input, invalid) = match &call["args"] {
            Value::Object(map) => (Value::Object(map.clone()), None),
            Value::Null => (json!({}), None),
            other => (json!({}), Some(other.to_string())),
        };
        let name = call["name"].as_str().unwrap_or_default().to_owned();
        return Part::ToolCall(ToolCall { id, name, input, invalid, signature });
    }
    match given["text"].as_str() {
        Some(text) if given["thought"] == true => {
            Part::Reasoning(Reasoning { text: text.to_owned(), signature, id: None, provider: provider() })
        }
        Some(text) => Part::Text { text: text.to_owned(), signature },
        None => Part::Opaque { provider: provider(), value: given.clone() },
    }
}

/// Thoughts are counted apart here; they are output all the same.
pub fn usage(value: &Value) -> Option<Usage> {
    value.as_object()?;
    let thoughts = helper::number(value, "thoughtsTokenCount");
    let input =
        helper::number(value, "promptTokenCount").saturating_add(helper::number(value, "toolUsePromptTokenCount"));
    let output = helper::number(value, "candidatesTokenCount").saturating_add(thoughts);
    Some(Usage {
        input_tokens: input,
        output_tokens: output,
        total_tokens: value["totalTokenCount"].as_u64().unwrap_or_else(|| input.saturating_add(output)),
        cached_input_tokens: helper::number(value, "cachedContentTokenCount"),
        cache_write_tokens: 0,
        reasoning_tokens: thoughts,
        breakdown: Some(value.clone()),
    })
}
