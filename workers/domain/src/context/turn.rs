//! A turn: some messages, the calls of models that they led to, and what came of it (SPEC C-TRN-10).

use schemas::id::{ConversationId, TurnId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::message::ConversationMessage;
use super::status::TurnStatus;
use crate::chat::{ChatFailure, ProviderCallRecord, Usage};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConversationTurn {
    /// Unique in the whole system.
    pub id: TurnId,
    pub conversation_id: ConversationId,
    /// Name of the agent that handles it.
    pub agent: String,
    /// The messages that it answers.
    pub input_messages: Vec<ConversationMessage>,
    pub output_messages: Vec<ConversationMessage>,
    pub provider_calls: Vec<ProviderCallRecord>,
    pub status: TurnStatus,
    /// `user_message`, `tool_result`, `system_trigger`, or the caller's own word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_type: Option<String>,
    #[serde(rename = "started_at", with = "super::stamp")]
    pub started_at_ms: i64,
    #[serde(rename = "finished_at", with = "super::stamp::optional", default, skip_serializing_if = "Option::is_none")]
    pub finished_at_ms: Option<i64>,
    /// Why it failed, or that it was cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TurnError>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

impl ConversationTurn {
    /// Tokens of all its calls; `None` if no provider told any.
    pub fn usage(&self) -> Option<Usage> {
        let told = self.provider_calls.iter().filter_map(|call| call.usage.as_ref());
        told.cloned().reduce(|sum, one| sum.plus(&one))
    }

    /// What it says, one message a paragraph.
    pub fn text(&self) -> String {
        let texts: Vec<String> =
            self.output_messages.iter().map(|message| message.content.text()).filter(|text| !text.is_empty()).collect();
        texts.join("\n\n")
    }
}

/// Why a turn failed (SPEC C-ERR-09).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnError {
    /// What happened, and the remedy if there is one.
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The provider's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Value>,
}

impl TurnError {
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { message: message.into(), code: Some(code.to_owned()), provider: None, raw: None }
    }
}

impl From<&ChatFailure> for TurnError {
    fn from(failure: &ChatFailure) -> Self {
        Self {
            message: failure.message.clone(),
            code: Some(failure.code.as_str().to_owned()),
            provider: Some(failure.provider.clone()),
            raw: failure.raw.clone().map(Value::from),
        }
    }
}
