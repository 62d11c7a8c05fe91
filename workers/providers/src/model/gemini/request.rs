//! A request in the shape of generateContent.

use domain::chat::{ChatRequest, ImageSource, Part, ToolChoice, is_made_id};
use serde_json::{Value, json};

use crate::config::{Endpoint, Vendor};
use crate::model::fold::{Side, fold};
use crate::model::{Wire, json as helper, model_name};

pub fn wire(endpoint: &Endpoint, request: &ChatRequest, stream: bool) -> Wire {
    let mut body = match &request.native {
        Some(native) => native.body.clone(),
        None => translate(request),
    };
    // Here, model and streaming are in the address.
    if let Value::Object(map) = &mut body {
        map.remove("model");
        map.remove("stream");
    }
    let base = endpoint.base_url.trim_end_matches("/v1beta");
    let model = model_name(endpoint, request);
    let model = model.strip_prefix("models/").unwrap_or(model);
    let verb = if stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
    Wire {
        url: format!("{base}/v1beta/models/{model}:{verb}"),
        headers: Vec::new(),
        key_header: ("x-goog-api-key", ""),
        body,
    }
}

fn translate(request: &ChatRequest) -> Value {
    let folded = fold(request);
    let contents = folded.turns.iter().filter_map(|(side, parts)| {
        let parts: Vec<Value> = parts.iter().flat_map(|part| sent(part, request)).collect();
        let role = if *side == Side::Model { "model" } else { "user" };
        (!parts.is_empty()).then(|| json!({"role": role, "parts": parts}))
    });
    let mut body = json!({"contents": contents.collect::<Vec<Value>>()});
    if !folded.system.is_empty() {
        body["systemInstruction"] = json!({"parts": [{"text": folded.system}]});
    }
    let parameters = &request.parameters;
    if !request.tools.is_empty() {
        let tool = |tool: &domain::chat::ToolSpec| json!({"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.input_schema});
        body["tools"] = json!([{"functionDeclarations": request.tools.iter().map(tool).collect::<Vec<Value>>()}]);
        if let Some(choice) = &parameters.tool_choice {
            let calling = match choice {
                ToolChoice::Auto => json!({"mode": "AUTO"}),
                ToolChoice::None => json!({"mode": "NONE"}),
                ToolChoice::Any => json!({"mode": "ANY"}),
                ToolChoice::Tool(name) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
            };
            body["toolConfig"] = json!({"functionCallingConfig": calling});
        }
    }
    let generation = generation(request);
    if generation.as_object().is_some_and(|map| !map.is_empty()) {
        body["generationConfig"] = generation;
    }
    helper::fill_up(&mut body, &parameters.extra);
    body
}

fn generation(request: &ChatRequest) -> Value {
    let parameters = &request.parameters;
    let stop = (!parameters.stop_sequences.is_empty()).then_some(&parameters.stop_sequences);
    let mut generation = json!({});
    helper::merge(
        &mut generation,
        &json!({
            "maxOutputTokens": parameters.max_tokens,
            "temperature": parameters.temperature,
            "topP": parameters.top_p,
            "stopSequences": stop,
            "responseMimeType": parameters.json.then_some("application/json"),
        }),
    );
    generation
}

fn sent(part: &Part, request: &ChatRequest) -> Vec<Value> {
    let one = match part {
        Part::Text { text, signature } if text.is_empty() && signature.is_none() => return Vec::new(),
        Part::Text { text, signature } => signed(json!({"text": text}), signature.as_deref()),
        Part::Image { source } => image(source),
        Part::ToolCall(call) => {
            let mut function = json!({"name": call.name, "args": helper::input_object(call)});
            if !is_made_id(&call.id) {
                function["id"] = call.id.as_str().into();
            }
            signed(json!({"functionCall": function}), call.signature.as_deref())
        }
        Part::ToolResult { call_id, content, is_error } => return result(call_id, content, *is_error, request),
        Part::Reasoning(thoughts) if thoughts.provider == Vendor::Gemini.as_str() => {
            // Thoughts may stay away unless they are signed.
            let Some(signature) = &thoughts.signature else { return Vec::new() };
            signed(json!({"text": thoughts.text, "thought": true}), Some(signature))
        }
        Part::Opaque { provider, value } if provider == Vendor::Gemini.as_str() => value.clone(),
        Part::Reasoning(_) | Part::Opaque { .. } => return Vec::new(),
    };
    vec![one]
}

fn signed(mut part: Value, signature: Option<&str>) -> Value {
    if let Some(signature) = signature {
        part["thoughtSignature"] = signature.into();
    }
    part
}

fn image(source: &ImageSource) -> Value {
    match source {
        ImageSource::Url { url } => json!({"fileData": {"fileUri": url}}),
        ImageSource::Base64 { media_type, data } => json!({"inlineData": {"mimeType": media_type, "data": data}}),
    }
}

/// A result is an object here; a text becomes one. Its pictures follow.
fn result(call_id: &str, content: &[Part], is_error: bool, request: &ChatRequest) -> Vec<Value> {
    let text: String = content.iter().filter_map(Part::as_text).collect();
    let response = match serde_json::from_str(&text) {
        _ if is_error => json!({"error": text}),
        Ok(Value::Object(map)) => Value::Object(map),
        _ => json!({"result": text}),
    };
    let name = request.tool_name(call_id).unwrap_or(call_id);
    let mut function = json!({"name": name, "response": response});
    if !is_made_id(call_id) {
        function["id"] = call_id.into();
    }
    let images = content.iter().filter_map(|part| match part {
        Part::Image { source } => Some(image(source)),
        _ => None,
    });
    std::iter::once(json!({"functionResponse": function})).chain(images).collect()
}
