//! What agents remember (SPEC 1.23): one shape for facts, blocks and summaries alike.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::id::{AgentId, MemoryId, Namespace};

/// Whose memories are meant. It comes from where a call is made, never from what the call says.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MemoryOwner {
    pub namespace: Namespace,
    pub agent_id: AgentId,
}

/// How a memory comes into a request (SPEC 4.9).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemoryTier {
    /// Always, as a block of the system prompt.
    Core,
    /// Always, as a block before the messages.
    Working,
    /// When it is searched for.
    #[default]
    Archival,
}

impl MemoryTier {
    pub const ALL: [Self; 3] = [Self::Core, Self::Working, Self::Archival];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Working => "working",
            Self::Archival => "archival",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tier| tier.as_str() == text)
    }
}

/// One thing that an agent remembers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Memory {
    pub id: MemoryId,
    pub namespace: Namespace,
    pub agent_id: AgentId,
    /// Its name; no other memory of the agent has the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    pub tier: MemoryTier,
    /// A word of the library that wrote it. Nothing here interprets it.
    #[serde(rename = "type")]
    pub kind: String,
    /// Empty in lists and among hits if `content_ref` is set; reading it by id gives all of it.
    pub content: String,
    /// Where content lies that is too large for the row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_ref: Option<String>,
    /// How important it is, whatever is asked for: 0 to 1.
    pub significance: f64,
    #[serde(default)]
    pub metadata: Map<String, Value>,
    /// The model whose vector is stored with it; absent if it could not be embedded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedding_model: Option<String>,
    /// Counts the changes, from 1.
    pub version: u64,
    pub created_at_ms: i64,
    pub updated_at_ms: i64,
}

/// A memory as the HTTP API answers it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MemoryView {
    #[serde(flatten)]
    pub memory: Memory,
    pub created_at: String,
    pub updated_at: String,
    /// How well it fits what was searched for: 0 to 1. Absent unless something was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relevance: Option<f64>,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct MemoryPage {
    pub items: Vec<MemoryView>,
    pub next_cursor: Option<String>,
    /// A search looked at the newest memories only, because there are so many.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
}

/// What a write made of a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemoryChange {
    Created,
    Updated,
    /// It was like this already.
    Unchanged,
    /// It has another version than the writer expected; nothing was written.
    Conflict,
    /// It was deleted; nothing was written. Another id makes a new memory.
    Gone,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_is_written_in_the_words_of_its_contract() {
        let memory = Memory {
            id: MemoryId::parse("m1").unwrap(),
            namespace: Namespace::default_ns(),
            agent_id: AgentId::parse("writer").unwrap(),
            label: None,
            tier: MemoryTier::Core,
            kind: "fact".into(),
            content: "Short answers.".into(),
            content_ref: None,
            significance: 0.5,
            metadata: Map::new(),
            embedding_model: None,
            version: 1,
            created_at_ms: 1,
            updated_at_ms: 2,
        };
        let text = serde_json::to_string(&memory).unwrap();
        assert_eq!(
            text,
            "{\"id\":\"m1\",\"namespace\":\"default\",\"agent_id\":\"writer\",\"tier\":\"core\",\"type\":\"fact\",\
             \"content\":\"Short answers.\",\"significance\":0.5,\"metadata\":{},\"version\":1,\"created_at_ms\":1,\
             \"updated_at_ms\":2}"
        );
        assert_eq!(serde_json::from_str::<Memory>(&text).unwrap(), memory);
        for tier in MemoryTier::ALL {
            assert_eq!(MemoryTier::parse(tier.as_str()), Some(tier));
        }
    }
}
