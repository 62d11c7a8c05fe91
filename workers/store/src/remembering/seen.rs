//! What a search needs of a memory, apart from the row that it was read from.

use domain::failure::Failure;
use domain::memory::Traits;
use domain::memory::search::{Scanned, Words};
use domain::memory::terms::Bag;
use schemas::id::MemoryId;
use schemas::memory::MemoryTier;

use super::find::traits;
use crate::columns::{Columns, id};

pub(crate) struct SeenRow {
    tier: MemoryTier,
    significance: f64,
    updated_at_ms: i64,
    kind: Box<str>,
    metadata: Box<str>,
    /// Of its label and its content.
    words: Bag,
    /// The vector and its model.
    embedding: Option<(Box<str>, Box<[u8]>)>,
}

impl SeenRow {
    pub(crate) fn id_of(row: &impl Columns) -> Result<MemoryId, Failure> {
        id(row, "id")
    }

    pub(crate) fn of(row: &impl Columns) -> Result<Self, Failure> {
        let Traits { tier, kind, significance, metadata, updated_at_ms } = traits(row)?;
        let embedding = match (row.opt_text("embedding_model")?, row.opt_bytes("embedding")?) {
            (Some(model), Some(vector)) => Some((model.into(), vector.into())),
            _ => None,
        };
        Ok(Self {
            tier,
            significance,
            updated_at_ms,
            kind: kind.into(),
            metadata: metadata.into(),
            words: Bag::of(row.opt_text("label")?.into_iter().chain([row.text("content")?])),
            embedding,
        })
    }

    /// Shows it to a search.
    pub(crate) fn shown(&self, id: &MemoryId, see: impl FnOnce(&Scanned<'_>)) {
        let Self { tier, significance, updated_at_ms, kind, metadata, words, embedding } = self;
        let (tier, significance, updated_at_ms) = (*tier, *significance, *updated_at_ms);
        let traits = Traits { tier, kind, significance, metadata, updated_at_ms };
        let embedding = embedding.as_ref().map(|(model, vector)| (&**model, &**vector));
        see(&Scanned { id, traits, words: Words::Bag(words), embedding });
    }

    /// About as much memory as it takes.
    pub(crate) fn bytes(&self) -> usize {
        let vector = self.embedding.as_ref().map_or(0, |(model, vector)| model.len() + vector.len());
        2 * size_of::<Self>() + self.kind.len() + self.metadata.len() + self.words.bytes() + vector
    }
}
