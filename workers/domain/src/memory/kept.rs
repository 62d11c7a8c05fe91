//! A memory on its way between two places: SQL, where it is written, and the archive, where it stays.
//!
//! A row counts its **revisions**: changes, vectors put in, and its deletion. Of two copies of a row the
//! one of the higher revision is right, and copies of one revision are equal. So moving a row twice is
//! moving it once, and it needs no watermark.

use schemas::id::MemoryId;
use schemas::memory::{Memory, MemoryOwner, MemoryTier};

use super::filter::Traits;
use super::search::{Scanned, Words};
use super::{Embedding, vector};

/// A row in one revision.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptMemory {
    pub owner: MemoryOwner,
    pub id: MemoryId,
    pub revision: u64,
    /// `None`: it was deleted.
    pub memory: Option<Memory>,
    pub embedding: Option<Embedding>,
}

impl KeptMemory {
    /// Whether its content is in the archive alone, because only its vector changed since it went there.
    pub fn lacks_content(&self) -> bool {
        self.memory.as_ref().is_some_and(lacks_content)
    }

    /// Roughly what it takes in memory.
    pub fn bytes(&self) -> usize {
        let memory = self.memory.as_ref().map_or(0, |memory| memory.content.len());
        1_024 + memory + self.embedding.as_ref().map_or(0, |embedding| 4 * embedding.vector.len())
    }
}

/// Whether the content of a memory is elsewhere: what overflows is never empty.
pub fn lacks_content(memory: &Memory) -> bool {
    memory.content_ref.is_some() && memory.content.is_empty()
}

/// What a search sees of a row, from either place.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    pub id: MemoryId,
    pub tier: MemoryTier,
    pub kind: String,
    pub significance: f64,
    /// JSON.
    pub metadata: String,
    pub updated_at_ms: i64,
    /// Label and content, or only their words; of content that overflowed, its beginning.
    pub text: String,
    pub embedding: Option<Embedding>,
}

impl Candidate {
    /// Lets a search see it.
    pub fn shown<R>(&self, see: impl FnOnce(&Scanned<'_>) -> R) -> R {
        let vector = self.embedding.as_ref().map(|embedding| vector::to_bytes(&embedding.vector));
        let model = self.embedding.as_ref().map(|embedding| embedding.model.as_str());
        see(&Scanned {
            id: &self.id,
            traits: Traits {
                tier: self.tier,
                kind: &self.kind,
                significance: self.significance,
                metadata: &self.metadata,
                updated_at_ms: self.updated_at_ms,
            },
            words: Words::Text { label: None, content: &self.text },
            embedding: model.zip(vector.as_deref()),
        })
    }
}

/// Rows of the archive that may be hits.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Candidates {
    pub rows: Vec<Candidate>,
    /// Memories that pass the filter, as far as an index can tell, these among them.
    pub total: u64,
}
