//! One reply: a text, a frame, thoughts, tool calls or a failure, after a delay, word by word.

use domain::chat::{ChatDelta, ChatReply, Finish, Part, Reasoning, ToolCall, Usage};
use serde::Deserialize;
use serde_json::{Value, json};

use super::asked::{Asked, tokens};
use super::template::{self, Facts};
use crate::call::{CallError, Class};
use crate::config::SCRIPTED;

/// Characters of a piece of a tool call's arguments.
const ARGUMENT_CHARS: usize = 16;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    #[serde(default)]
    text: Option<String>,
    /// A step frame; sent as JSON text.
    #[serde(default)]
    frame: Option<Value>,
    /// Thoughts, before anything else.
    #[serde(default)]
    reasoning: Option<String>,
    #[serde(default)]
    tool_calls: Vec<Call>,
    /// Before the first piece.
    #[serde(default)]
    pub delay_ms: u64,
    /// Between two pieces.
    #[serde(default)]
    pub delta_ms: u64,
    /// Why it ends, if not as its content says.
    #[serde(default)]
    finish: Option<Finish>,
    #[serde(default)]
    usage: Option<Tokens>,
    #[serde(default)]
    fail: Option<Fail>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    #[serde(default)]
    id: Option<String>,
    name: String,
    #[serde(default)]
    arguments: Value,
    /// Instead of arguments: their text, verbatim, which may be no JSON.
    #[serde(default)]
    arguments_text: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tokens {
    input_tokens: u64,
    output_tokens: u64,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fail {
    class: FailClass,
    #[serde(default)]
    retry_after_ms: Option<u64>,
    #[serde(default)]
    message: Option<String>,
    /// Pieces that are told before it fails; at once if not given.
    #[serde(default)]
    after: Option<usize>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FailClass {
    RateLimit,
    Overloaded,
    Timeout,
    Cut,
    Auth,
    Invalid,
    Safety,
    Quota,
}

impl FailClass {
    fn class(self) -> Class {
        match self {
            Self::RateLimit => Class::RateLimit,
            Self::Overloaded => Class::Overloaded,
            Self::Timeout => Class::Timeout,
            Self::Cut => Class::Cut,
            Self::Auth => Class::Auth,
            Self::Invalid => Class::Invalid,
            Self::Safety => Class::Safety,
            Self::Quota => Class::Quota,
        }
    }
}

impl Reply {
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self) -> Result<(), String> {
        if self.text.is_some() && self.frame.is_some() {
            return Err("give one of text and frame".to_owned());
        }
        let says = self.text.is_some() || self.frame.is_some() || !self.tool_calls.is_empty();
        match &self.fail {
            None if !says => return Err("give text, frame, tool_calls or fail".to_owned()),
            Some(fail) if says != fail.after.is_some() => {
                return Err("give one of text, frame and fail, or say how much comes first with fail.after".to_owned());
            }
            _ => {}
        }
        for (name, ms) in [("delay_ms", self.delay_ms), ("delta_ms", self.delta_ms)] {
            if ms > schemas::limits::EFFECT_MS_MAX {
                return Err(format!("{name}: at most {}", schemas::limits::EFFECT_MS_MAX));
            }
        }
        if let Some(frame) = &self.frame {
            if !frame.is_object() {
                return Err("frame: must be an object".to_owned());
            }
            template::check(frame).map_err(|problem| format!("frame: {problem}"))?;
        }
        for call in &self.tool_calls {
            if call.arguments_text.is_some() && !call.arguments.is_null() {
                return Err("tool_calls: give one of arguments and arguments_text".to_owned());
            }
            template::check(&call.arguments).map_err(|problem| format!("tool_calls: {problem}"))?;
        }
        for (name, text) in [("text", &self.text), ("reasoning", &self.reasoning)] {
            let check = |text: &String| template::check(&Value::from(text.as_str()));
            text.as_ref().map_or(Ok(()), check).map_err(|problem| format!("{name}: {problem}"))?;
        }
        Ok(())
    }

    /// The whole reply, which a failure may never let out.
    pub fn answer(&self, asked: &Asked, facts: &Facts) -> ChatReply {
        let text = match (&self.text, &self.frame) {
            (Some(text), _) => template::text(text, facts),
            (None, Some(frame)) => template::value(frame, facts).to_string(),
            (None, None) => String::new(),
        };
        let mut parts = Vec::new();
        if let Some(thoughts) = &self.reasoning {
            let text = template::text(thoughts, facts);
            let thoughts = Reasoning { text, signature: None, id: None, provider: SCRIPTED.to_owned() };
            parts.push(Part::Reasoning(thoughts));
        }
        if !text.is_empty() {
            parts.push(Part::text(text));
        }
        let calls = self.tool_calls.iter().enumerate();
        parts.extend(calls.map(|(number, call)| Part::ToolCall(call.called(number, facts))));
        let given = if self.tool_calls.is_empty() { Finish::Stop } else { Finish::ToolUse };
        let finish = self.finish.unwrap_or(given);
        let spoken = parts.iter().map(|part| match part {
            Part::Text { text, .. } => tokens(text),
            Part::Reasoning(thoughts) => tokens(&thoughts.text),
            _ => 0,
        });
        let counted = Tokens { input_tokens: asked.input_tokens, output_tokens: spoken.sum() };
        let Tokens { input_tokens, output_tokens } = self.usage.unwrap_or(counted);
        let total_tokens = input_tokens.saturating_add(output_tokens);
        ChatReply {
            raw: json!({"parts": parts}),
            parts,
            finish,
            raw_finish: Some(finish.as_str().to_owned()),
            usage: Some(Usage { input_tokens, output_tokens, total_tokens, ..Usage::default() }),
            provider: SCRIPTED.to_owned(),
            model: asked.model.clone().unwrap_or_else(|| super::MODEL_NAME.to_owned()),
            message_id: None,
            request_id: None,
        }
    }

    /// The pieces that are told, and the failure they end in, if any.
    pub fn course(&self, answer: &ChatReply) -> (Vec<ChatDelta>, Option<CallError>) {
        let mut all = pieces(answer);
        let Some(fail) = &self.fail else { return (all, None) };
        all.truncate(fail.after.unwrap_or(0));
        let class = fail.class.class();
        let message = fail.message.clone().unwrap_or_else(|| format!("a failure of class {}", class.as_str()));
        let error = CallError::new(class, format!("scripted: {message}")).retry_after(fail.retry_after_ms);
        // As a service says it that has begun nothing.
        let status = (class == Class::RateLimit && fail.after.is_none()).then_some(429);
        (all, Some(CallError { status, ..error }))
    }
}

impl Call {
    fn called(&self, number: usize, facts: &Facts) -> ToolCall {
        let id = self.id.clone().unwrap_or_else(|| format!("call_{}", number + 1));
        let input = match &self.arguments {
            Value::Null => json!({}),
            arguments => template::value(arguments, facts),
        };
        let read = self.arguments_text.as_ref().map(|text| crate::model::tool_call(id.clone(), &self.name, text));
        read.unwrap_or(ToolCall { id, name: self.name.clone(), input, invalid: None, signature: None })
    }
}

/// Texts word by word, arguments in short pieces, figures last.
fn pieces(answer: &ChatReply) -> Vec<ChatDelta> {
    let mut pieces = Vec::new();
    let words = |text: &str| text.split_inclusive(char::is_whitespace).map(str::to_owned).collect::<Vec<_>>();
    for (part, content) in answer.parts.iter().enumerate() {
        match content {
            Part::Text { text, .. } => {
                pieces.extend(words(text).into_iter().map(|text| ChatDelta::Text { part, text }));
            }
            Part::Reasoning(thoughts) => {
                pieces.extend(words(&thoughts.text).into_iter().map(|text| ChatDelta::Reasoning { part, text }));
            }
            Part::ToolCall(call) => {
                let (id, name) = (Some(call.id.clone()), Some(call.name.clone()));
                pieces.push(ChatDelta::ToolCall { part, id, name, arguments: String::new() });
                let text = call.invalid.clone().unwrap_or_else(|| call.input.to_string());
                let chars: Vec<char> = text.chars().collect();
                pieces.extend(chars.chunks(ARGUMENT_CHARS).map(|chars| {
                    let arguments = chars.iter().collect();
                    ChatDelta::ToolCall { part, id: None, name: None, arguments }
                }));
            }
            _ => {}
        }
    }
    pieces.extend(answer.usage.clone().map(|usage| ChatDelta::Usage { usage }));
    pieces
}
