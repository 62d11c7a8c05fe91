//! A message of Anthropic Messages as a reply. The stream's message is read here, too, so that both
//! ways lead to the same.

use std::collections::BTreeMap;

use domain::chat::{ChatReply, Finish, Part, Reasoning, ToolCall, Usage};
use serde_json::{Value, json};

use crate::call::CallError;
use crate::config::Vendor;
use crate::model::{Reading, declined, failure, json as helper, lacking};

const VENDOR: Vendor = Vendor::Anthropic;

pub fn read(body: Value, _reading: Reading<'_>) -> Result<ChatReply, CallError> {
    if body["type"] == "error" {
        return Err(failure::in_stream(VENDOR, &body));
    }
    read_message(body, &BTreeMap::new())
}

/// `invalid` has the arguments that are no JSON object, by position of their block.
pub fn read_message(body: Value, invalid: &BTreeMap<usize, String>) -> Result<ChatReply, CallError> {
    let Some(blocks) = body["content"].as_array() else { return Err(lacking(VENDOR, "content")) };
    let parts: Vec<Part> =
        blocks.iter().enumerate().map(|(at, block)| part(block, invalid.get(&at).cloned())).collect();
    let raw_finish = body["stop_reason"].as_str().map(str::to_owned);
    let finish = match raw_finish.as_deref() {
        Some("end_turn" | "stop_sequence") => Finish::Stop,
        Some("tool_use") => Finish::ToolUse,
        Some("max_tokens" | "model_context_window_exceeded") => Finish::Length,
        Some("refusal") => Finish::Refusal,
        Some("pause_turn") => Finish::Pause,
        _ => Finish::Other,
    };
    let reply = ChatReply {
        parts,
        finish,
        raw_finish,
        usage: usage(&body["usage"]),
        provider: VENDOR.as_str().to_owned(),
        model: body["model"].as_str().unwrap_or_default().to_owned(),
        message_id: helper::text(&body, "id").map(str::to_owned),
        request_id: None,
        raw: body,
    };
    if finish == Finish::Refusal && reply.text().is_empty() {
        return Err(declined(VENDOR, "refusal"));
    }
    Ok(reply)
}

/// Each block is one part, so that positions stay.
fn part(block: &Value, invalid: Option<String>) -> Part {
    let text = |field: &str| block[field].as_str().unwrap_or_default().to_owned();
    match block["type"].as_str() {
        Some("text") => Part::text(text("text")),
        Some("tool_use") => {
            let object = block["input"].is_object();
            let strange = || (!object && !block["input"].is_null()).then(|| block["input"].to_string());
            Part::ToolCall(ToolCall {
                id: text("id"),
                name: text("name"),
                input: if object { block["input"].clone() } else { json!({}) },
                invalid: invalid.or_else(strange),
                signature: None,
            })
        }
        Some("thinking") => Part::Reasoning(Reasoning {
            text: text("thinking"),
            signature: helper::text(block, "signature").map(str::to_owned),
            id: None,
            provider: VENDOR.as_str().to_owned(),
        }),
        _ => Part::Opaque { provider: VENDOR.as_str().to_owned(), value: block.clone() },
    }
}

/// The cache is counted apart here; it is input all the same.
pub fn usage(value: &Value) -> Option<Usage> {
    value.as_object()?;
    let cached = helper::number(value, "cache_read_input_tokens");
    let written = helper::number(value, "cache_creation_input_tokens");
    let input = helper::number(value, "input_tokens").saturating_add(cached).saturating_add(written);
    let output = helper::number(value, "output_tokens");
    Some(Usage {
        input_tokens: input,
        output_tokens: output,
        total_tokens: input.saturating_add(output),
        cached_input_tokens: cached,
        cache_write_tokens: written,
        // Thoughts are not told apart.
        reasoning_tokens: 0,
        breakdown: Some(value.clone()),
    })
}
