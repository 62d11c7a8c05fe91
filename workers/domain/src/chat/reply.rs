//! What a model answered.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::message::{Message, Part, Role, ToolCall};
use super::usage::Usage;

/// Why a model stopped, in the words of SPEC K-36.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Finish {
    #[serde(rename = "stop")]
    Stop,
    /// It waits for the results of its tool calls.
    #[serde(rename = "tool_calls")]
    ToolUse,
    /// The bound on output tokens, or the end of the context window.
    #[serde(rename = "length")]
    Length,
    /// It declined, or a filter cut it short. What it said before is in the reply.
    #[serde(rename = "content_filter")]
    Refusal,
    /// It wants to go on: send the reply back as the last message.
    #[serde(rename = "pause")]
    Pause,
    /// See `raw_finish`.
    #[serde(rename = "other")]
    Other,
}

impl Finish {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::ToolUse => "tool_calls",
            Self::Length => "length",
            Self::Refusal => "content_filter",
            Self::Pause => "pause",
            Self::Other => "other",
        }
    }
}

/// A whole reply. A stream that broke off never becomes one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChatReply {
    /// In the order in which the model gave them; the `part` of a delta is a position here.
    pub parts: Vec<Part>,
    pub finish: Finish,
    /// The provider's own word for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_finish: Option<String>,
    /// Absent when the provider does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    pub provider: String,
    /// The model that answered, as the provider names it.
    pub model: String,
    /// The provider's id of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The provider's id of the request, for its support.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The provider's message, untouched; put together from the events when it was streamed.
    pub raw: Value,
}

impl ChatReply {
    /// Its texts, one after the other.
    pub fn text(&self) -> String {
        self.parts.iter().filter_map(Part::as_text).collect()
    }

    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(Part::as_tool_call)
    }

    /// As the message that the next request carries, with signatures and thoughts.
    pub fn message(&self) -> Message {
        Message::new(Role::Assistant, self.parts.clone())
    }
}
