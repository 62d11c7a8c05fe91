//! `memory.update`: changes of a memory that is there; the rest of it stays.

use schemas::limits::MEMORY_CONTENT_BYTES_MAX;
use schemas::memory::{Memory, MemoryTier};
use schemas::problem::FieldProblem;
use serde_json::{Map, Value};

use super::read::MemoryRef;
use super::{checked, kind, metadata, prose, share, tier};
use crate::memory::{Embedding, MemoryKey, NewMemory};

const FIELDS: &[&str] = &["id", "label", "tier", "type", "content", "significance", "metadata"];
const CHANGES: &[&str] = &["tier", "type", "content", "significance", "metadata"];

/// Changes without problems.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryUpdate {
    /// By id if the input has one, else by label.
    pub key: MemoryKey,
    pub tier: Option<MemoryTier>,
    pub kind: Option<String>,
    pub content: Option<String>,
    pub significance: Option<f64>,
    /// Replaces all of it.
    pub metadata: Option<Map<String, Value>>,
}

impl MemoryUpdate {
    /// # Errors
    /// Everything that is wrong with the input.
    pub fn check(input: &Value) -> Result<Self, Vec<FieldProblem>> {
        checked(input, FIELDS, |object, problems| {
            let key = MemoryRef::read(object, problems);
            if CHANGES.iter().all(|name| !object.has(name)) {
                problems.add("content", format!("nothing is to be changed; give one of {}", CHANGES.join(", ")));
            }
            let what = "the new text";
            let update = (
                tier(object, problems),
                kind(object, problems),
                prose(object, "content", MEMORY_CONTENT_BYTES_MAX, what, problems),
                share(object, "significance", problems),
                metadata(object, problems),
            );
            let (tier, kind, content, significance, metadata) = update;
            key.map(|key| Self { key, tier, kind, content, significance, metadata })
        })
    }

    /// The memory as it is to be. `embedding` is of the new content, if it has one. It is written
    /// only if nobody else wrote since `memory` was read.
    pub fn over(&self, memory: Memory, embedding: Option<Embedding>) -> NewMemory {
        NewMemory {
            id: memory.id,
            label: memory.label,
            tier: self.tier.unwrap_or(memory.tier),
            kind: self.kind.clone().unwrap_or(memory.kind),
            content: self.content.clone().unwrap_or(memory.content),
            significance: self.significance.unwrap_or(memory.significance),
            metadata: self.metadata.clone().unwrap_or(memory.metadata),
            embedding,
            expect_version: Some(memory.version),
        }
    }
}
