//! Remembering and recalling: an embedder and the memories together. This module asks ports; what it
//! decides is in `domain::memory`, which is pure.
//!
//! An embedder that fails does not stop anybody: the memory is stored without a vector, and the search
//! goes by words (SPEC 4.9). What failed is told beside the result, for the log.

mod archived;
mod moving;
mod reembed;
mod search;
mod update;
mod write;

pub use archived::ArchivedMemories;
pub use moving::{Moved, move_memories};
pub use reembed::{Reembedded, Reembedding};
pub use search::search;
pub use update::update;
pub use write::{keep, write};

use crate::failure::Failure;
use crate::memory::Embedding;
use crate::ports::Embedder;

/// A result, and why it had to do without a vector.
#[derive(Debug, Clone, PartialEq)]
pub struct Recalled<T> {
    pub value: T,
    pub not_embedded: Option<Failure>,
}

/// The vector of a text.
async fn embedding(embedder: &dyn Embedder, text: &str) -> Result<Embedding, Failure> {
    let mut vectors = embedder.embed(&[text]).await?;
    match vectors.pop() {
        Some(vector) if vectors.is_empty() => Ok(Embedding { model: embedder.model().to_owned(), vector }),
        _ => Err(Failure::internal(format!("{} gave not one vector for one text", embedder.model()))),
    }
}

/// What came of asking for a vector: the vector, or why there is none.
fn split(result: Result<Embedding, Failure>) -> (Option<Embedding>, Option<Failure>) {
    match result {
        Ok(embedding) => (Some(embedding), None),
        Err(failure) => (None, Some(failure)),
    }
}
