//! One reply: a text, a frame, tool calls or a failure, after a delay.

use domain::effect::ModelRequest;
use serde::Deserialize;
use serde_json::{Value, json};

use super::template::{self, Facts};
use crate::call::{CallError, Class};
use crate::model::{Answer, Finish, Usage};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    #[serde(default)]
    text: Option<String>,
    /// A step frame; sent as JSON text.
    #[serde(default)]
    frame: Option<Value>,
    #[serde(default)]
    tool_calls: Vec<ToolCall>,
    #[serde(default)]
    pub delay_ms: u64,
    #[serde(default)]
    fail: Option<Fail>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolCall {
    #[serde(default)]
    id: Option<String>,
    name: String,
    #[serde(default)]
    arguments: Value,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fail {
    class: FailClass,
    #[serde(default)]
    retry_after_ms: Option<u64>,
    #[serde(default)]
    message: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FailClass {
    RateLimit,
    Overloaded,
    Timeout,
    Auth,
    Invalid,
    Cut,
}

impl FailClass {
    fn class(self) -> Class {
        match self {
            Self::RateLimit => Class::RateLimit,
            Self::Overloaded => Class::Overloaded,
            Self::Timeout => Class::Timeout,
            Self::Auth => Class::Auth,
            Self::Invalid => Class::Invalid,
            Self::Cut => Class::Cut,
        }
    }
}

impl Reply {
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self) -> Result<(), String> {
        let kinds = [self.text.is_some(), self.frame.is_some(), self.fail.is_some()];
        let said = kinds.iter().filter(|given| **given).count();
        if said > 1 {
            return Err("give one of text, frame and fail".to_owned());
        }
        if said == 0 && self.tool_calls.is_empty() {
            return Err("give text, frame, tool_calls or fail".to_owned());
        }
        if self.delay_ms > schemas::limits::EFFECT_MS_MAX {
            return Err(format!("delay_ms: at most {}", schemas::limits::EFFECT_MS_MAX));
        }
        if let Some(frame) = &self.frame {
            if !frame.is_object() {
                return Err("frame: must be an object".to_owned());
            }
            template::check(frame).map_err(|problem| format!("frame: {problem}"))?;
        }
        for call in &self.tool_calls {
            template::check(&call.arguments).map_err(|problem| format!("tool_calls: {problem}"))?;
        }
        self.text.as_ref().map_or(Ok(()), |text| {
            template::check(&Value::from(text.as_str())).map_err(|problem| format!("text: {problem}"))
        })
    }

    /// # Errors
    /// The scripted failure.
    pub fn answer(&self, request: &ModelRequest, facts: &Facts) -> Result<Answer, CallError> {
        if let Some(fail) = &self.fail {
            let class = fail.class.class();
            let message = fail.message.clone().unwrap_or_else(|| format!("a failure of class {}", class.as_str()));
            return Err(CallError::new(class, format!("scripted: {message}")).retry_after(fail.retry_after_ms));
        }
        let text = match (&self.text, &self.frame) {
            (Some(text), _) => template::text(text, facts),
            (None, Some(frame)) => template::value(frame, facts).to_string(),
            (None, None) => String::new(),
        };
        let tool_calls: Vec<Value> = self
            .tool_calls
            .iter()
            .enumerate()
            .map(|(number, call)| {
                let id = call.id.clone().unwrap_or_else(|| format!("call_{}", number + 1));
                json!({"id": id, "name": call.name, "arguments": template::value(&call.arguments, facts)})
            })
            .collect();
        let finish = if tool_calls.is_empty() { Finish::Stop } else { Finish::ToolCalls };
        let usage =
            Usage { input_tokens: tokens(&request.system) + tokens(&request.prompt), output_tokens: tokens(&text) };
        Ok(Answer { text, model: "script".to_owned(), finish, usage, tool_calls })
    }
}

/// The platform's estimate: four characters a token, rounded up (SPEC S-145).
fn tokens(text: &str) -> u64 {
    (text.chars().count() as u64).div_ceil(4)
}
