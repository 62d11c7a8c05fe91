//! A request in the shape of the Responses API. Nothing is kept at the provider: every request has
//! the whole history, thoughts included.

use domain::chat::{ChatRequest, Message, Part, Role, ToolChoice};
use serde_json::{Value, json};

use crate::config::{Endpoint, Vendor};
use crate::model::openai_chat;
use crate::model::{Wire, json as helper};

pub fn wire(endpoint: &Endpoint, request: &ChatRequest, stream: bool) -> Wire {
    let model = request.model.as_deref().unwrap_or(&endpoint.model);
    let mut body = match &request.native {
        Some(native) => native.body.clone(),
        None => translate(request, model),
    };
    body["model"] = model.into();
    body["stream"] = stream.into();
    Wire {
        url: format!("{}/responses", endpoint.base_url),
        headers: Vec::new(),
        key_header: ("authorization", "Bearer "),
        body,
    }
}

fn translate(request: &ChatRequest, model: &str) -> Value {
    let (parameters, thinks) = (&request.parameters, thinks(model));
    let input: Vec<Value> = request.messages.iter().flat_map(|message| items(message, thinks)).collect();
    let mut body = json!({"input": input, "store": false});
    if thinks {
        body["include"] = json!(["reasoning.encrypted_content"]);
    }
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

/// Whether a model thinks before it answers. Those that do not refuse both ways of having thoughts with status 400:
/// to be asked for them ("Encrypted content is not supported with this model", as in pydantic/pydantic-ai#2865), and
/// to be sent those of another model ("Reasoning input items can only be provided to a reasoning or computer use
/// model"). Of OpenAI's own, as its list of models has it (platform.openai.com/docs/models), these are all up to
/// gpt-4.5, the `chat` variant of gpt-5, and the ones of ChatGPT. What has another name is taken to think.
fn thinks(model: &str) -> bool {
    // Gateways put a vendor before the name, tuned models have their kind there.
    let name = model.rsplit('/').next().unwrap_or(model);
    let name = name.strip_prefix("ft:").unwrap_or(name);
    !["gpt-3", "gpt-4", "gpt-5-chat", "chatgpt-"].iter().any(|family| name.starts_with(family))
}

/// One message is several items here: texts that follow each other, calls, results, thoughts.
fn items(message: &Message, thinks: bool) -> Vec<Value> {
    let mut items = Vec::new();
    let mut said: Vec<Value> = Vec::new();
    for part in &message.content {
        if let Some(content) = content(message.role, part) {
            said.push(content);
            continue;
        }
        let Some(item) = item(part, thinks) else { continue };
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

fn item(part: &Part, thinks: bool) -> Option<Value> {
    let own = Vendor::OpenaiResponses.as_str();
    Some(match part {
        Part::ToolCall(call) => json!({"type": "function_call", "call_id": call.id, "name": call.name,
            "arguments": helper::input_text(call)}),
        Part::ToolResult { call_id, content, is_error } => {
            json!({"type": "function_call_output", "call_id": call_id, "output": output(content, *is_error)})
        }
        Part::Reasoning(thoughts) if thinks && thoughts.provider == own => {
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
