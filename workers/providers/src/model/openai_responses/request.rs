//! A request in the shape of the Responses API. Nothing is kept at the provider: every request has
//! the whole history, thoughts included.

use domain::chat::{ChatRequest, Message, Part, Role, ToolChoice};
use serde_json::{Value, json};

use crate::config::{Endpoint, Vendor};
use crate::model::openai_chat;
use crate::model::{Wire, json as helper};

pub fn wire(endpoint: &Endpoint, request: &ChatRequest, stream: bool) -> Wire {
    let mut body = match &request.native {
        Some(native) => native.body.clone(),
        None => translate(request),
    };
    body["model"] = request.model.as_deref().unwrap_or(&endpoint.model).into();
    body["stream"] = stream.into();
    Wire {
        url: format!("{}/responses", endpoint.base_url),
        headers: Vec::new(),
        key_header: ("authorization", "Bearer "),
        body,
    }
}

fn translate(request: &ChatRequest) -> Value {
    let parameters = &request.parameters;
    let input: Vec<Value> = request.messages.iter().flat_map(items).collect();
    let mut body = json!({"input": input, "store": false, "include": ["reasoning.encrypted_content"]});
    if !request.tools.is_empty() {
        let tool = |tool: &domain::chat::ToolSpec| {
            json!({"type": "function", "name": tool.name, "description": tool.description,
                "parameters": tool.input_schema, "strict": false})
        };
        body["tools"] = request.tools.iter().map(tool).collect();
        if let Some(choice) = &parameters.tool_choice {
            body["tool_choice"] = match choice {
                ToolChoice::Auto => "auto".into(),
                ToolChoice::None => "none".into(),
                ToolChoice::Any => "required".into(),
                ToolChoice::Tool(name) => json!({"type": "function", "name": name}),
            };
        }
    }
    if let Some(max_tokens) = parameters.max_tokens {
        body["max_output_tokens"] = max_tokens.into();
    }
    if let Some(temperature) = parameters.temperature {
        body["temperature"] = temperature.into();
    }
    if let Some(top_p) = parameters.top_p {
        body["top_p"] = top_p.into();
    }
    if parameters.json {
        body["text"] = json!({"format": {"type": "json_object"}});
    }
    helper::fill_up(&mut body, &parameters.extra);
    body
}

/// One message is several items here: texts that follow each other, calls, results, thoughts.
fn items(message: &Message) -> Vec<Value> {
    let mut items = Vec::new();
    let mut said: Vec<Value> = Vec::new();
    for part in &message.content {
        if let Some(content) = content(message.role, part) {
            said.push(content);
            continue;
        }
        let Some(item) = item(part) else { continue };
        items.extend(spoken(message.role, std::mem::take(&mut said)));
        items.push(item);
    }
    items.extend(spoken(message.role, said));
    items
}

fn spoken(role: Role, content: Vec<Value>) -> Option<Value> {
    let role = if role == Role::Tool { Role::User } else { role };
    (!content.is_empty()).then(|| json!({"type": "message", "role": role.as_str(), "content": content}))
}

fn content(role: Role, part: &Part) -> Option<Value> {
    Some(match part {
        Part::Text { text, .. } if text.is_empty() => return None,
        Part::Text { text, .. } if role == Role::Assistant => {
            json!({"type": "output_text", "text": text, "annotations": []})
        }
        Part::Text { text, .. } => json!({"type": "input_text", "text": text}),
        Part::Image { source } => {
            json!({"type": "input_image", "image_url": openai_chat::image_url(source), "detail": "auto"})
        }
        _ => return None,
    })
}

fn item(part: &Part) -> Option<Value> {
    let own = Vendor::OpenaiResponses.as_str();
    Some(match part {
        Part::ToolCall(call) => json!({"type": "function_call", "call_id": call.id, "name": call.name,
            "arguments": helper::input_text(call)}),
        Part::ToolResult { call_id, content, is_error } => {
            json!({"type": "function_call_output", "call_id": call_id, "output": output(content, *is_error)})
        }
        Part::Reasoning(thoughts) if thoughts.provider == own => {
            // Without the cipher text the provider, which keeps nothing, could not know them.
            let cipher = thoughts.signature.as_ref()?;
            let summary = if thoughts.text.is_empty() {
                json!([])
            } else {
                json!([{"type": "summary_text", "text": thoughts.text}])
            };
            let mut item = json!({"type": "reasoning", "summary": summary, "encrypted_content": cipher});
            helper::merge(&mut item, &json!({"id": thoughts.id}));
            item
        }
        Part::Opaque { provider, value } if provider == own => value.clone(),
        _ => return None,
    })
}

/// A text, or a list when there are pictures.
fn output(result: &[Part], is_error: bool) -> Value {
    if result.iter().all(|part| matches!(part, Part::Text { .. })) {
        return openai_chat::result_text(result, is_error).into();
    }
    let mut list: Vec<Value> = result.iter().filter_map(|part| content(Role::User, part)).collect();
    if is_error {
        list.insert(0, json!({"type": "input_text", "text": "Error:"}));
    }
    list.into()
}
