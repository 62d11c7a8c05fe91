//! Messages and their parts.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    System,
    User,
    Assistant,
    Tool,
}

impl Role {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// One message of the history that a model is shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    pub role: Role,
    /// A plain text is read as one text part.
    #[serde(deserialize_with = "parts")]
    pub content: Vec<Part>,
    /// Who speaks: an agent, a tool, a user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    Text {
        text: String,
        /// Opaque proof of the provider that goes back with this very part.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    Image {
        source: ImageSource,
    },
    ToolCall(ToolCall),
    ToolResult {
        call_id: String,
        /// Texts and images.
        #[serde(deserialize_with = "parts")]
        content: Vec<Part>,
        #[serde(default)]
        is_error: bool,
    },
    Reasoning(Reasoning),
    /// Something of one provider that has no shape here (a search of its own, hidden thoughts). It
    /// goes back to that provider as it came, and to no other.
    Opaque {
        provider: String,
        value: Value,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ImageSource {
    /// The provider fetches it; we do not.
    Url { url: String },
    /// `data` in base64.
    Base64 { media_type: String, data: String },
}

/// A wish of the model to have a tool called.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    /// An object; empty when `invalid` is set.
    pub input: Value,
    /// The arguments as they came, when they are no JSON object: the call is answered with
    /// `INVALID_INPUT` and never carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid: Option<String>,
    /// Opaque proof of the provider that goes back with this very part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

/// Thoughts of a model. Some providers want them back, signed, in the next request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reasoning {
    /// As far as it is shown; may be empty.
    pub text: String,
    /// Opaque proof or cipher text, sent back verbatim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// The provider's id of this item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Whose thoughts they are: other providers never see them.
    pub provider: String,
}

impl Part {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into(), signature: None }
    }

    pub fn tool_result(call_id: impl Into<String>, text: impl Into<String>, is_error: bool) -> Self {
        Self::ToolResult { call_id: call_id.into(), content: vec![Self::text(text)], is_error }
    }

    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text, .. } => Some(text),
            _ => None,
        }
    }

    pub fn as_tool_call(&self) -> Option<&ToolCall> {
        match self {
            Self::ToolCall(call) => Some(call),
            _ => None,
        }
    }
}

impl Message {
    pub fn new(role: Role, content: Vec<Part>) -> Self {
        Self { role, content, name: None }
    }

    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self::new(role, vec![Part::text(text)])
    }

    /// Its texts, one after the other.
    pub fn plain_text(&self) -> String {
        self.content.iter().filter_map(Part::as_text).collect()
    }
}

/// A list of parts, or a text that stands for one.
fn parts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Part>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Content {
        Text(String),
        Parts(Vec<Part>),
    }
    Ok(match Content::deserialize(deserializer)? {
        Content::Text(text) => vec![Part::text(text)],
        Content::Parts(parts) => parts,
    })
}
