//! Gemini: `POST /v1beta/models/<model>:generateContent`.

use domain::effect::ModelRequest;
use serde_json::{Value, json};

use super::{Answer, Finish, Usage, Wire, lacking, max_tokens};
use crate::call::{CallError, Class};
use crate::config::{Endpoint, Vendor};

pub(super) fn request(endpoint: &Endpoint, request: &ModelRequest) -> Wire {
    let mut generation = json!({"maxOutputTokens": max_tokens(endpoint, request)});
    if request.json {
        generation["responseMimeType"] = "application/json".into();
    }
    let mut body = json!({
        "contents": [{"role": "user", "parts": [{"text": request.prompt}]}],
        "generationConfig": generation,
    });
    if !request.system.is_empty() {
        body["systemInstruction"] = json!({"parts": [{"text": request.system}]});
    }
    let base = endpoint.base_url.trim_end_matches("/v1beta");
    let model = endpoint.model.trim_start_matches("models/");
    Wire {
        url: format!("{base}/v1beta/models/{model}:generateContent"),
        headers: Vec::new(),
        key_header: ("x-goog-api-key", ""),
        body,
    }
}

pub(super) fn answer(body: &Value) -> Result<Answer, CallError> {
    if let Some(reason) = body["promptFeedback"]["blockReason"].as_str() {
        return Err(CallError::new(Class::Safety, format!("gemini: the prompt was blocked ({reason})")));
    }
    let Some(candidate) = body["candidates"].get(0) else { return Err(lacking(Vendor::Gemini, "candidates")) };
    let parts = candidate["content"]["parts"].as_array().map_or(&[][..], Vec::as_slice);
    // Thoughts are marked and are no part of the answer.
    let spoken = parts.iter().filter(|part| part["thought"] != true);
    let text: String = spoken.filter_map(|part| part["text"].as_str()).collect();
    let tool_calls: Vec<Value> = parts
        .iter()
        .filter_map(|part| part.get("functionCall"))
        .map(|call| json!({"id": call["id"], "name": call["name"], "arguments": call["args"]}))
        .collect();
    let finish = match candidate["finishReason"].as_str() {
        Some("STOP") if !tool_calls.is_empty() => Finish::ToolCalls,
        Some("STOP") => Finish::Stop,
        Some("MAX_TOKENS") => Finish::Length,
        Some("SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII") => Finish::ContentFilter,
        _ => Finish::Other,
    };
    if finish == Finish::ContentFilter && text.is_empty() {
        return Err(CallError::new(Class::Safety, "gemini: the model declined to answer"));
    }
    let usage = &body["usageMetadata"];
    let count = |key: &str| usage[key].as_u64().unwrap_or(0);
    Ok(Answer {
        text,
        model: body["modelVersion"].as_str().unwrap_or_default().to_owned(),
        finish,
        usage: Usage {
            input_tokens: count("promptTokenCount"),
            output_tokens: count("candidatesTokenCount") + count("thoughtsTokenCount"),
        },
        tool_calls,
    })
}
