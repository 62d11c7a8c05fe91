//! A request in the shape of Anthropic Messages.

use domain::chat::{ChatRequest, ImageSource, Part, ToolChoice};
use serde_json::{Value, json};

use crate::config::{Endpoint, Vendor};
use crate::model::fold::{Side, fold};
use crate::model::{Wire, json as helper};

/// Version of the API this folder is written for.
const VERSION: &str = "2023-06-01";
/// The API wants a bound; this one when nobody gives one.
const TOKENS_DEFAULT: u32 = 4_096;

pub fn wire(endpoint: &Endpoint, request: &ChatRequest, stream: bool) -> Wire {
    let mut body = match &request.native {
        Some(native) => native.body.clone(),
        None => translate(request),
    };
    body["model"] = request.model.as_deref().unwrap_or(&endpoint.model).into();
    body["stream"] = stream.into();
    Wire {
        url: format!("{}/v1/messages", endpoint.base_url.trim_end_matches("/v1")),
        headers: vec![("anthropic-version", VERSION.to_owned())],
        key_header: ("x-api-key", ""),
        body,
    }
}

fn translate(request: &ChatRequest) -> Value {
    let folded = fold(request);
    let messages = folded.turns.iter().filter_map(|(side, parts)| {
        let blocks: Vec<Value> = parts.iter().filter_map(|part| block(part)).collect();
        let role = if *side == Side::Model { "assistant" } else { "user" };
        // Empty messages are refused.
        (!blocks.is_empty()).then(|| json!({"role": role, "content": blocks}))
    });
    let parameters = &request.parameters;
    let mut body = json!({
        "messages": messages.collect::<Vec<Value>>(),
        "max_tokens": parameters.max_tokens.unwrap_or(TOKENS_DEFAULT),
    });
    if !folded.system.is_empty() {
        body["system"] = folded.system.into();
    }
    if !request.tools.is_empty() {
        let tool = |tool: &domain::chat::ToolSpec| json!({"name": tool.name, "description": tool.description, "input_schema": tool.input_schema});
        body["tools"] = request.tools.iter().map(tool).collect();
        if let Some(choice) = &parameters.tool_choice {
            body["tool_choice"] = match choice {
                ToolChoice::Auto => json!({"type": "auto"}),
                ToolChoice::None => json!({"type": "none"}),
                ToolChoice::Any => json!({"type": "any"}),
                ToolChoice::Tool(name) => json!({"type": "tool", "name": name}),
            };
        }
    }
    if let Some(temperature) = parameters.temperature {
        body["temperature"] = temperature.into();
    }
    if let Some(top_p) = parameters.top_p {
        body["top_p"] = top_p.into();
    }
    if !parameters.stop_sequences.is_empty() {
        body["stop_sequences"] = parameters.stop_sequences.clone().into();
    }
    helper::fill_up(&mut body, &parameters.extra);
    body
}

/// `None` for what this API cannot be told: empty texts, and what belongs to other providers.
fn block(part: &Part) -> Option<Value> {
    Some(match part {
        Part::Text { text, .. } if text.is_empty() => return None,
        Part::Text { text, .. } => json!({"type": "text", "text": text}),
        Part::Image { source } => json!({"type": "image", "source": image(source)}),
        Part::ToolCall(call) => {
            json!({"type": "tool_use", "id": call.id, "name": call.name, "input": helper::input_object(call)})
        }
        Part::ToolResult { call_id, content, is_error } => {
            let content: Vec<Value> = content.iter().filter_map(block).collect();
            json!({"type": "tool_result", "tool_use_id": call_id, "content": content, "is_error": is_error})
        }
        Part::Reasoning(thoughts) if thoughts.provider == Vendor::Anthropic.as_str() => {
            // Unsigned thoughts are refused.
            let signature = thoughts.signature.as_ref()?;
            json!({"type": "thinking", "thinking": thoughts.text, "signature": signature})
        }
        Part::Opaque { provider, value } if provider == Vendor::Anthropic.as_str() => value.clone(),
        Part::Reasoning(_) | Part::Opaque { .. } => return None,
    })
}

fn image(source: &ImageSource) -> Value {
    match source {
        ImageSource::Url { url } => json!({"type": "url", "url": url}),
        ImageSource::Base64 { media_type, data } => json!({"type": "base64", "media_type": media_type, "data": data}),
    }
}
