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
    let blocks = body["content"].as_array().map_or(&[][..], Vec::as_slice);
    // What there is of its input may lack the rest, and nothing tells.
    let cut = cut_call(&body, blocks).map(|at| (at, input_text(&blocks[at])));
    read_message(body, &BTreeMap::from_iter(cut))
}

/// Position of the call that an answer may have been cut in: nothing came after it.
pub fn cut_call(message: &Value, blocks: &[Value]) -> Option<usize> {
    let is_cut = matches!(finish_of(message["stop_reason"].as_str()), Finish::Length | Finish::Refusal);
    let last = blocks.len().checked_sub(1).filter(|_| is_cut)?;
    (blocks[last]["type"] == "tool_use").then_some(last)
}

/// The input of a call, as far as there is any.
fn input_text(block: &Value) -> String {
    if has_input(block) { block["input"].to_string() } else { String::new() }
}

pub fn has_input(block: &Value) -> bool {
    match &block["input"] {
        Value::Object(input) => !input.is_empty(),
        other => !other.is_null(),
    }
}

fn finish_of(stop_reason: Option<&str>) -> Finish {
    match stop_reason {
        Some("end_turn" | "stop_sequence") => Finish::Stop,
        Some("tool_use") => Finish::ToolUse,
        Some("max_tokens" | "model_context_window_exceeded") => Finish::Length,
        Some("refusal") => Finish::Refusal,
        Some("pause_turn") => Finish::Pause,
        _ => Finish::Other,
    }
}

/// `invalid` has the arguments that are no JSON object, or not the whole one, by position of their block.
pub fn read_message(body: Value, invalid: &BTreeMap<usize, String>) -> Result<ChatReply, CallError> {
    let Some(blocks) = body["content"].as_array() else { return Err(lacking(VENDOR, "content")) };
    let parts: Vec<Part> =
        blocks.iter().enumerate().map(|(at, block)| part(block, invalid.get(&at).cloned())).collect();
    let raw_finish = body["stop_reason"].as_str().map(str::to_owned);
    let finish = finish_of(raw_finish.as_deref());
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
        return Err(declined(VENDOR, &refusal(&reply.raw["stop_details"])));
    }
    Ok(reply)
}

/// Why it declined, as far as it says so.
fn refusal(details: &Value) -> String {
    let said = ["category", "explanation"].into_iter().filter_map(|field| helper::text(details, field));
    let words: Vec<&str> = std::iter::once("refusal").chain(said).collect();
    words.join(": ").chars().take(failure::SAID_CHARS_MAX).collect()
}

/// Each block is one part, so that positions stay.
fn part(block: &Value, invalid: Option<String>) -> Part {
    let text = |field: &str| block[field].as_str().unwrap_or_default().to_owned();
    match block["type"].as_str() {
        Some("text") => Part::text(text("text")),
        Some("tool_use") => {
            let object = block["input"].is_object();
            let strange = || (!object && !block["input"].is_null()).then(|| block["input"].to_string());
            let invalid = invalid.or_else(strange);
            Part::ToolCall(ToolCall {
                id: text("id"),
                name: text("name"),
                input: if object && invalid.is_none() { block["input"].clone() } else { json!({}) },
                invalid,
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
