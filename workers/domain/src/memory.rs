//! What agents remember, as pure decisions: what may be written, what a search finds and in which
//! order, which rows stand for a memory, and which blocks go into a request (SPEC 1.23, 4.9).
//!
//! Whose memories are meant is never read from input: it is an argument of the ports.

pub mod blocks;
pub mod filter;
pub mod fusion;
pub mod input;
pub mod kept;
pub mod search;
pub mod terms;
pub mod vector;

#[cfg(test)]
mod tests;

use schemas::id::MemoryId;
use schemas::memory::{Memory, MemoryTier};
use serde_json::{Map, Value, json};

use crate::action::hash;
pub use filter::{MemoryFilter, Traits};
pub use fusion::Weights;
pub use vector::Embedding;

/// A memory ready to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct NewMemory {
    /// Of a new row. The same for a repeat of the same write, so that it is told from another one.
    pub id: MemoryId,
    /// Names the memory: if the agent has one of this label, that one is written.
    pub label: Option<String>,
    pub tier: MemoryTier,
    pub kind: String,
    pub content: String,
    /// 0 to 1.
    pub significance: f64,
    pub metadata: Map<String, Value>,
    /// Of the content. Absent: a row whose content stays keeps the vector that it has.
    pub embedding: Option<Embedding>,
    /// Write only if the row has this version.
    pub expect_version: Option<u64>,
}

impl NewMemory {
    /// Tells whether two writes mean the same: SHA-256 of all that is kept but for the vector.
    pub fn body_hash(&self) -> [u8; 32] {
        hash::sha256(&hash::canonical(&json!({
            "label": self.label,
            "tier": self.tier.as_str(),
            "type": self.kind,
            "content": self.content,
            "significance": self.significance,
            "metadata": self.metadata,
        })))
    }

    pub fn content_hash(&self) -> [u8; 32] {
        hash::sha256(&self.content)
    }
}

/// What a memory is found by without a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemoryKey {
    Id(MemoryId),
    Label(String),
}

/// A search of one agent's memories.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryQuery {
    pub text: String,
    /// Of the text. Without it memories are found by their words alone.
    pub embedding: Option<Embedding>,
    pub filter: MemoryFilter,
    pub weights: Weights,
    /// Hits below are left out; 0 leaves out only what has nothing to do with the text.
    pub min_relevance: f64,
    pub limit: usize,
}

/// A memory that a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryHit {
    /// Its content is empty if it overflowed: read it by id.
    pub memory: Memory,
    /// What hits are ordered by: relevance and significance by their weights, 0 to 1.
    pub score: f64,
    /// How much it has to do with the text: vector and words by their weights, 0 to 1.
    pub relevance: f64,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct MemoryHits {
    /// Best first.
    pub hits: Vec<MemoryHit>,
    /// Memories of the agent beyond `limits::MEMORIES_SCANNED_MAX` were not looked at.
    pub incomplete: bool,
}
