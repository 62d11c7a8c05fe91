//! `memory.write`.

use schemas::id::MemoryId;
use schemas::limits::MEMORY_CONTENT_BYTES_MAX;
use schemas::memory::MemoryTier;
use schemas::problem::FieldProblem;
use serde_json::{Map, Value};

use super::{checked, kind, label, metadata, prose, share, tier};
use crate::memory::NewMemory;

const FIELDS: &[&str] = &["id", "label", "tier", "type", "content", "significance", "metadata"];
const KIND: &str = "note";
/// In the middle: neither above nor below what nobody said anything about.
const SIGNIFICANCE: f64 = 0.5;

/// A memory to be written, without problems.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryWrite {
    /// Of a memory that is there, or of a new one; made by the caller if absent.
    pub id: Option<MemoryId>,
    pub label: Option<String>,
    pub tier: MemoryTier,
    pub kind: String,
    pub content: String,
    pub significance: f64,
    pub metadata: Map<String, Value>,
}

impl MemoryWrite {
    /// # Errors
    /// Everything that is wrong with the input.
    pub fn check(input: &Value) -> Result<Self, Vec<FieldProblem>> {
        checked(input, FIELDS, |object, problems| {
            if !object.has("content") {
                problems.add("content", "is missing; give the text to remember");
            }
            let content = prose(object, "content", MEMORY_CONTENT_BYTES_MAX, "the text to remember", problems);
            let write = Self {
                id: object.id("id", problems),
                label: label(object, problems),
                tier: tier(object, problems).unwrap_or_default(),
                kind: kind(object, problems).unwrap_or_else(|| KIND.to_owned()),
                content: String::new(),
                significance: share(object, "significance", problems).unwrap_or(SIGNIFICANCE),
                metadata: metadata(object, problems).unwrap_or_default(),
            };
            content.map(|content| Self { content, ..write })
        })
    }

    /// `made` is the id of a new memory if the input names none.
    pub fn into_new(self, made: MemoryId) -> NewMemory {
        NewMemory {
            id: self.id.unwrap_or(made),
            label: self.label,
            tier: self.tier,
            kind: self.kind,
            content: self.content,
            significance: self.significance,
            metadata: self.metadata,
            embedding: None,
            expect_version: None,
        }
    }
}
