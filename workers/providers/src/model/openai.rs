//! OpenAI Chat Completions, and the many servers that speak it: `POST …/chat/completions`.

use domain::effect::ModelRequest;
use serde_json::{Value, json};

use super::{Answer, Finish, Usage, Wire, lacking, max_tokens};
use crate::call::{CallError, Class};
use crate::config::{Endpoint, Vendor};

pub(super) fn request(endpoint: &Endpoint, request: &ModelRequest) -> Wire {
    let mut messages = Vec::with_capacity(2);
    if !request.system.is_empty() {
        messages.push(json!({"role": "system", "content": request.system}));
    }
    messages.push(json!({"role": "user", "content": request.prompt}));
    let mut body = json!({"model": endpoint.model, "messages": messages});
    // The original's newer models refuse the older name, other servers know no other.
    let original = endpoint.base_url.contains("//api.openai.com");
    body[if original { "max_completion_tokens" } else { "max_tokens" }] = max_tokens(endpoint, request).into();
    if request.json {
        body["response_format"] = json!({"type": "json_object"});
    }
    Wire {
        url: format!("{}/chat/completions", endpoint.base_url),
        headers: Vec::new(),
        key_header: ("authorization", "Bearer "),
        body,
    }
}

pub(super) fn answer(body: &Value) -> Result<Answer, CallError> {
    let Some(choice) = body["choices"].get(0) else { return Err(lacking(Vendor::Openai, "choices")) };
    let message = &choice["message"];
    let text = text_of(&message["content"]);
    let tool_calls: Vec<Value> = message["tool_calls"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|call| {
            let function = &call["function"];
            json!({"id": call["id"], "name": function["name"], "arguments": arguments(&function["arguments"])})
        })
        .collect();
    let finish = match choice["finish_reason"].as_str() {
        Some("stop") => Finish::Stop,
        Some("tool_calls" | "function_call") => Finish::ToolCalls,
        Some("length") => Finish::Length,
        Some("content_filter") => Finish::ContentFilter,
        _ => Finish::Other,
    };
    if text.is_empty() && tool_calls.is_empty() {
        if finish == Finish::ContentFilter || message["refusal"].is_string() {
            return Err(CallError::new(Class::Safety, "openai: the model declined to answer"));
        }
        if !message.is_object() {
            return Err(lacking(Vendor::Openai, "message"));
        }
    }
    let usage = &body["usage"];
    Ok(Answer {
        text,
        model: body["model"].as_str().unwrap_or_default().to_owned(),
        finish,
        usage: Usage {
            input_tokens: usage["prompt_tokens"].as_u64().unwrap_or(0),
            output_tokens: usage["completion_tokens"].as_u64().unwrap_or(0),
        },
        tool_calls,
    })
}

/// Content is a text, or on some servers a list of parts.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

/// Arguments come as JSON in a text; what is no JSON is kept as it is.
fn arguments(value: &Value) -> Value {
    match value.as_str() {
        Some(text) => serde_json::from_str(text).unwrap_or_else(|_| value.clone()),
        None => value.clone(),
    }
}
