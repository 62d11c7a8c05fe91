//! What a model is asked.

use std::collections::BTreeMap;

use schemas::limits::{CHAT_MESSAGES_MAX, CHAT_TOOLS_MAX};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::message::{Message, Part, Role};
use super::native::NativeRequest;

/// One request, in the shape of no provider in particular, or in a provider's own (SPEC K-31).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChatRequest {
    /// The history, oldest first, already cut to what the model may see.
    #[serde(default)]
    pub messages: Vec<Message>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolSpec>,
    #[serde(default)]
    pub parameters: Parameters,
    /// Another model of the same provider than the profile's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Sent instead of all of the above; only model and streaming are set in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native: Option<NativeRequest>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// What the model calls it.
    pub name: String,
    #[serde(default)]
    pub description: String,
    /// A JSON Schema of an object.
    pub input_schema: Value,
}

/// Which tools the model may or must call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    Auto,
    /// Tools are shown and may not be called.
    None,
    /// At least one.
    Any,
    /// This one.
    Tool(String),
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Parameters {
    /// Most output tokens, thoughts included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop_sequences: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// The answer must be one JSON object, where the provider can promise that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub json: bool,
    /// Extra headers beside the body, out of [`super::EXTRA_HEADERS`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Further fields of the provider's body, as they are. They never replace what is set here.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Parameters {
    /// These, and what they leave open from a profile. A profile's `max_tokens` is a bound, too:
    /// it lowers what is asked for and never raises it.
    pub fn over(&self, profile: &Self) -> Self {
        let max_tokens = match (self.max_tokens, profile.max_tokens) {
            (Some(wanted), Some(bound)) => Some(wanted.min(bound)),
            (wanted, bound) => wanted.or(bound),
        };
        let mut extra = profile.extra.clone();
        extra.extend(self.extra.clone());
        let mut headers = profile.headers.clone();
        headers.extend(self.headers.clone());
        let own_stop = !self.stop_sequences.is_empty();
        Self {
            max_tokens,
            temperature: self.temperature.or(profile.temperature),
            top_p: self.top_p.or(profile.top_p),
            stop_sequences: if own_stop { &self.stop_sequences } else { &profile.stop_sequences }.clone(),
            tool_choice: self.tool_choice.clone().or_else(|| profile.tool_choice.clone()),
            json: self.json || profile.json,
            headers,
            extra,
        }
    }
}

impl ChatRequest {
    /// A question with instructions.
    pub fn ask(system: &str, prompt: &str) -> Self {
        let mut messages = Vec::with_capacity(2);
        if !system.is_empty() {
            messages.push(Message::text(Role::System, system));
        }
        messages.push(Message::text(Role::User, prompt));
        Self { messages, ..Self::default() }
    }

    /// Texts of the system messages, with a blank line between them.
    pub fn system(&self) -> String {
        let texts: Vec<String> =
            self.messages.iter().filter(|m| m.role == Role::System).map(Message::plain_text).collect();
        texts.iter().filter(|text| !text.is_empty()).map(String::as_str).collect::<Vec<_>>().join("\n\n")
    }

    /// The name of the tool that a call of the history was for.
    pub fn tool_name(&self, call_id: &str) -> Option<&str> {
        let parts = self.messages.iter().rev().flat_map(|message| &message.content);
        parts.filter_map(Part::as_tool_call).find(|call| call.id == call_id).map(|call| call.name.as_str())
    }

    /// What no provider could take.
    ///
    /// # Errors
    /// The first problem, in words that name the remedy.
    pub fn check(&self) -> Result<(), String> {
        if let Some(native) = &self.native {
            let object = native.body.is_object();
            return if object { Ok(()) } else { Err("a native request must be a JSON object".to_owned()) };
        }
        if !self.messages.iter().any(|message| message.role != Role::System) {
            return Err("a request needs at least one message besides the system's".to_owned());
        }
        if self.messages.len() > CHAT_MESSAGES_MAX {
            return Err(format!("{} messages are too many; send at most {CHAT_MESSAGES_MAX}", self.messages.len()));
        }
        if self.tools.len() > CHAT_TOOLS_MAX {
            return Err(format!("{} tools are too many; offer at most {CHAT_TOOLS_MAX}", self.tools.len()));
        }
        match self.tools.iter().find(|tool| tool.name.is_empty() || !tool.input_schema.is_object()) {
            Some(tool) => Err(format!("the tool {:?} needs a name and an input schema that is an object", tool.name)),
            None => Ok(()),
        }
    }
}
