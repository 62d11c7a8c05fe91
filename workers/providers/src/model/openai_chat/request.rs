//! A request in the shape of Chat Completions.

use domain::chat::{ChatRequest, ImageSource, Message, Part, Role, ToolChoice};
use serde_json::{Value, json};

use crate::config::Endpoint;
use crate::model::{Wire, json as helper};

pub fn wire(endpoint: &Endpoint, request: &ChatRequest, stream: bool) -> Wire {
    let mut body = match &request.native {
        Some(native) => native.body.clone(),
        None => translate(request, endpoint),
    };
    body["model"] = request.model.as_deref().unwrap_or(&endpoint.model).into();
    body["stream"] = stream.into();
    if stream && !body["stream_options"].is_object() {
        body["stream_options"] = json!({"include_usage": true});
    }
    Wire {
        url: format!("{}/chat/completions", endpoint.base_url),
        headers: Vec::new(),
        key_header: ("authorization", "Bearer "),
        body,
    }
}

fn translate(request: &ChatRequest, endpoint: &Endpoint) -> Value {
    let (parameters, original) = (&request.parameters, endpoint.is_original());
    let messages: Vec<Value> = request.messages.iter().flat_map(|message| said(message, original)).collect();
    let mut body = json!({"messages": messages});
    if !request.tools.is_empty() {
        let tool = |tool: &domain::chat::ToolSpec| {
            json!({"type": "function", "function":
                {"name": tool.name, "description": tool.description, "parameters": tool.input_schema}})
        };
        body["tools"] = request.tools.iter().map(tool).collect();
        if let Some(choice) = &parameters.tool_choice {
            body["tool_choice"] = match choice {
                ToolChoice::Auto => "auto".into(),
                ToolChoice::None => "none".into(),
                ToolChoice::Any => "required".into(),
                ToolChoice::Tool(name) => json!({"type": "function", "function": {"name": name}}),
            };
        }
    }
    if let Some(max_tokens) = parameters.max_tokens {
        // OpenAI's newer models refuse the older name, on Azure too; other servers know no other.
        let is_newer = original || endpoint.is_azure();
        body[if is_newer { "max_completion_tokens" } else { "max_tokens" }] = max_tokens.into();
    }
    if let Some(temperature) = parameters.temperature {
        body["temperature"] = temperature.into();
    }
    if let Some(top_p) = parameters.top_p {
        body["top_p"] = top_p.into();
    }
    if !parameters.stop_sequences.is_empty() {
        body["stop"] = parameters.stop_sequences.clone().into();
    }
    if parameters.json {
        body["response_format"] = json!({"type": "json_object"});
    }
    helper::fill_up(&mut body, &parameters.extra);
    body
}

/// One message is several here when it has results of tools: each is a message of its own.
fn said(message: &Message, original: bool) -> Vec<Value> {
    let mut out = Vec::new();
    let mut shown = Vec::new();
    for part in &message.content {
        if let Part::ToolResult { call_id, content, is_error } = part {
            out.push(json!({"role": "tool", "tool_call_id": call_id, "content": result_text(content, *is_error)}));
            // Results are texts only; their images follow as the user's.
            shown.extend(content.iter().filter(|part| matches!(part, Part::Image { .. })).filter_map(content_part));
        }
    }
    if !shown.is_empty() {
        out.push(json!({"role": "user", "content": shown}));
    }
    let mut own = match message.role {
        Role::Assistant => assistant(message, original),
        Role::System => Some(json!({"role": "system", "content": message.plain_text()})),
        Role::User | Role::Tool => user(message),
    };
    if let (Some(own), Some(name)) = (&mut own, message.name.as_deref().filter(|name| is_plain(name))) {
        own["name"] = name.into();
    }
    out.extend(own);
    out
}

fn user(message: &Message) -> Option<Value> {
    let only_text = message.content.iter().all(|part| matches!(part, Part::Text { .. } | Part::ToolResult { .. }));
    if only_text {
        let text = message.plain_text();
        return (!text.is_empty()).then(|| json!({"role": "user", "content": text}));
    }
    let parts: Vec<Value> = message.content.iter().filter_map(content_part).collect();
    (!parts.is_empty()).then(|| json!({"role": "user", "content": parts}))
}

fn assistant(message: &Message, original: bool) -> Option<Value> {
    let text = message.plain_text();
    let calls: Vec<Value> = message.content.iter().filter_map(Part::as_tool_call).map(tool_call).collect();
    if text.is_empty() && calls.is_empty() {
        return None;
    }
    let mut own = json!({"role": "assistant", "content": if text.is_empty() { Value::Null } else { text.into() }});
    if !calls.is_empty() {
        own["tool_calls"] = calls.into();
        // Servers whose models think between calls want the thoughts of this turn back; the
        // original knows no such field.
        let thoughts: String = message.content.iter().filter_map(own_thoughts).collect();
        if !original && !thoughts.is_empty() {
            own["reasoning_content"] = thoughts.into();
        }
    }
    Some(own)
}

fn own_thoughts(part: &Part) -> Option<&str> {
    match part {
        Part::Reasoning(thoughts) if thoughts.provider == "openai" => Some(&thoughts.text),
        _ => None,
    }
}

fn tool_call(call: &domain::chat::ToolCall) -> Value {
    json!({"id": call.id, "type": "function",
        "function": {"name": call.name, "arguments": helper::input_text(call)}})
}

fn content_part(part: &Part) -> Option<Value> {
    Some(match part {
        Part::Text { text, .. } if !text.is_empty() => json!({"type": "text", "text": text}),
        Part::Image { source } => json!({"type": "image_url", "image_url": {"url": image_url(source)}}),
        _ => return None,
    })
}

/// An address, or the picture itself as one.
pub fn image_url(source: &ImageSource) -> String {
    match source {
        ImageSource::Url { url } => url.clone(),
        ImageSource::Base64 { media_type, data } => format!("data:{media_type};base64,{data}"),
    }
}

/// There is no field for failure: the text says it.
pub fn result_text(content: &[Part], is_error: bool) -> String {
    let text: String = content.iter().filter_map(Part::as_text).collect();
    if is_error { format!("Error: {text}") } else { text }
}

/// Names with other characters are refused.
fn is_plain(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}
