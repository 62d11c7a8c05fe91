//! Anthropic Messages: `POST /v1/messages`.

use domain::effect::ModelRequest;
use serde_json::{Value, json};

use super::{Answer, Finish, Usage, Wire, lacking, max_tokens};
use crate::call::{CallError, Class};
use crate::config::{Endpoint, Vendor};

/// Version of the API this file is written for.
const VERSION: &str = "2023-06-01";

pub(super) fn request(endpoint: &Endpoint, request: &ModelRequest) -> Wire {
    let mut body = json!({
        "model": endpoint.model,
        "max_tokens": max_tokens(endpoint, request),
        "messages": [{"role": "user", "content": request.prompt}],
    });
    if !request.system.is_empty() {
        body["system"] = request.system.as_str().into();
    }
    Wire {
        url: format!("{}/v1/messages", endpoint.base_url.trim_end_matches("/v1")),
        headers: vec![("anthropic-version", VERSION.to_owned())],
        key_header: ("x-api-key", ""),
        body,
    }
}

pub(super) fn answer(body: &Value) -> Result<Answer, CallError> {
    let Some(blocks) = body["content"].as_array() else { return Err(lacking(Vendor::Anthropic, "content")) };
    let kind = |block: &Value, kind: &str| block["type"] == kind;
    let text: String = blocks.iter().filter(|b| kind(b, "text")).filter_map(|b| b["text"].as_str()).collect();
    let tool_calls = blocks
        .iter()
        .filter(|block| kind(block, "tool_use"))
        .map(|b| json!({"id": b["id"], "name": b["name"], "arguments": b["input"]}))
        .collect();
    let finish = match body["stop_reason"].as_str() {
        Some("end_turn" | "stop_sequence") => Finish::Stop,
        Some("tool_use") => Finish::ToolCalls,
        Some("max_tokens" | "model_context_window_exceeded") => Finish::Length,
        Some("refusal") => Finish::ContentFilter,
        _ => Finish::Other,
    };
    if finish == Finish::ContentFilter && text.is_empty() {
        return Err(CallError::new(Class::Safety, "anthropic: the model declined to answer"));
    }
    let usage = &body["usage"];
    // Cached input is counted apart; it is input all the same.
    let input = ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];
    Ok(Answer {
        text,
        model: body["model"].as_str().unwrap_or_default().to_owned(),
        finish,
        usage: Usage {
            input_tokens: input.iter().filter_map(|key| usage[key].as_u64()).sum(),
            output_tokens: usage["output_tokens"].as_u64().unwrap_or(0),
        },
        tool_calls,
    })
}
