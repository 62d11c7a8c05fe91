//! A request as a script sees it: what was said last, and to whom.

use domain::chat::{ChatCall, ChatRequest, Message, NativeRequest, Part, Role, ToolChoice};
use serde_json::Value;

/// What conditions and placeholders are about.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub key: String,
    /// `<conversation>:<turn>`.
    pub run_id: String,
    /// Name of the configured profile, if one was named.
    pub profile: Option<String>,
    pub model: Option<String>,
    pub system: String,
    /// The last words of the user's side.
    pub prompt: String,
    /// Results of tools behind the model's last message, one a line.
    pub results: String,
    pub last: Role,
    pub messages: usize,
    /// Tools are offered and may be called.
    pub tools: bool,
    pub max_tokens: Option<u32>,
    pub streaming: bool,
    pub input_tokens: u64,
}

impl Asked {
    pub fn new(call: &ChatCall, request: &ChatRequest, profile: Option<&str>, streaming: bool) -> Self {
        let from_native = request.native.as_ref().map(of_native);
        let request = from_native.as_ref().unwrap_or(request);
        let messages = &request.messages;
        let spoken = |message: &&Message| message.role == Role::User && !message.plain_text().is_empty();
        let may_call = request.parameters.tool_choice != Some(ToolChoice::None);
        Self {
            key: call.id.clone(),
            run_id: call.context.run_id(),
            profile: profile.map(str::to_owned),
            model: call.request.model.clone(),
            system: request.system(),
            prompt: messages.iter().rev().find(spoken).map(Message::plain_text).unwrap_or_default(),
            results: new_results(messages),
            last: messages.last().map_or(Role::User, |message| message.role),
            messages: messages.len(),
            tools: !request.tools.is_empty() && may_call,
            max_tokens: request.parameters.max_tokens,
            streaming,
            input_tokens: messages.iter().flat_map(|message| &message.content).map(part_tokens).sum(),
        }
    }
}

fn new_results(messages: &[Message]) -> String {
    let fresh = messages.iter().rev().take_while(|message| message.role != Role::Assistant);
    let mut texts: Vec<String> = Vec::new();
    for message in fresh {
        for part in message.content.iter().rev() {
            if let Part::ToolResult { content, .. } = part {
                texts.push(content.iter().filter_map(Part::as_text).collect());
            }
        }
    }
    texts.reverse();
    texts.join("\n")
}

fn part_tokens(part: &Part) -> u64 {
    match part {
        Part::Text { text, .. } => tokens(text),
        Part::ToolCall(call) => tokens(&call.name) + tokens(&call.input.to_string()),
        Part::ToolResult { content, .. } => content.iter().map(part_tokens).sum(),
        Part::Reasoning(thoughts) => tokens(&thoughts.text),
        Part::Image { .. } | Part::Opaque { .. } => 0,
    }
}

/// The platform's estimate: four characters a token, rounded up (SPEC S-145).
pub(super) fn tokens(text: &str) -> u64 {
    (text.chars().count() as u64).div_ceil(4)
}

/// A provider's own request, as far as a script needs it: who said what. The providers' shapes
/// differ in names; text is text in all of them.
fn of_native(native: &NativeRequest) -> ChatRequest {
    let body = &native.body;
    let list = ["messages", "contents", "input"].iter().find_map(|name| body[*name].as_array());
    let mut messages: Vec<Message> = Vec::new();
    for name in ["system", "systemInstruction", "instructions"] {
        let text = text_of(&body[name]);
        if !text.is_empty() {
            messages.push(Message::text(Role::System, text));
        }
    }
    if let Some(text) = body["input"].as_str() {
        messages.push(Message::text(Role::User, text));
    }
    messages.extend(list.into_iter().flatten().map(message));
    let mut request = ChatRequest { messages, ..ChatRequest::default() };
    if body["tools"].as_array().is_some_and(|tools| !tools.is_empty()) {
        let schema = serde_json::json!({});
        request.tools =
            vec![domain::chat::ToolSpec { name: "any".to_owned(), description: String::new(), input_schema: schema }];
    }
    let none = body["tool_choice"] == "none" || body["tool_choice"]["type"] == "none";
    request.parameters.tool_choice = none.then_some(ToolChoice::None);
    request.parameters.max_tokens = body["max_tokens"].as_u64().and_then(|count| u32::try_from(count).ok());
    request
}

fn message(item: &Value) -> Message {
    let kind = item["type"].as_str().unwrap_or_default();
    let content = [&item["content"], &item["parts"]].into_iter().find(|value| !value.is_null()).unwrap_or(&Value::Null);
    let blocks = content.as_array().map_or(&[][..], Vec::as_slice);
    let answers = |block: &&Value| block["type"] == "tool_result" || block["functionResponse"].is_object();
    let results: Vec<&Value> = blocks.iter().filter(answers).collect();
    if !results.is_empty() {
        let result = |block: &&Value| Part::tool_result("", text_of(block), false);
        return Message::new(Role::Tool, results.iter().map(result).collect());
    }
    match (item["role"].as_str(), kind) {
        (Some("tool"), _) => Message::new(Role::Tool, vec![Part::tool_result("", text_of(content), false)]),
        (_, "function_call_output") => {
            Message::new(Role::Tool, vec![Part::tool_result("", text_of(&item["output"]), false)])
        }
        (Some("assistant" | "model"), _) | (_, "function_call" | "reasoning") => {
            Message::text(Role::Assistant, text_of(content))
        }
        (Some("system" | "developer"), _) => Message::text(Role::System, text_of(content)),
        _ => Message::text(Role::User, text_of(content)),
    }
}

/// All texts in a value: strings, and what is under the names that hold text.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(text_of).collect(),
        Value::Object(map) => {
            let names = ["text", "content", "parts", "output", "functionResponse", "response", "result"];
            names.iter().filter_map(|name| map.get(*name)).map(text_of).collect()
        }
        _ => String::new(),
    }
}
