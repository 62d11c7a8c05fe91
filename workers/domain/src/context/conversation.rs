//! A conversation without its messages (SPEC C-CNV-09, K-05).

use schemas::id::ConversationId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Conversation {
    pub id: ConversationId,
    /// Name of the agent that answers unless a turn names another.
    pub agent: String,
    /// The person or tenant that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(rename = "created_at", with = "super::stamp")]
    pub created_at_ms: i64,
    #[serde(rename = "updated_at", with = "super::stamp")]
    pub updated_at_ms: i64,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}
