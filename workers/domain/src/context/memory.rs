//! Blocks of an agent's memory that a model is shown (SPEC 4.9).

pub use schemas::memory::MemoryTier;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryBlock {
    pub tier: MemoryTier,
    /// Its title; unique per agent.
    pub label: String,
    pub content: String,
}

impl MemoryBlock {
    pub fn new(tier: MemoryTier, label: impl Into<String>, content: impl Into<String>) -> Self {
        Self { tier, label: label.into(), content: content.into() }
    }

    /// Title and content. An empty block shows, too: the model may be meant to fill it.
    pub(super) fn titled(&self) -> String {
        let content = self.content.trim();
        format!("## {}\n{}", self.label, if content.is_empty() { "(empty)" } else { content })
    }
}
