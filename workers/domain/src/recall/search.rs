//! `memory.search`.

use schemas::memory::MemoryOwner;

use super::{Recalled, embedding, split};
use crate::failure::Failure;
use crate::memory::MemoryHits;
use crate::memory::input::MemorySearch;
use crate::ports::{Embedder, Memories};

/// # Errors
/// The memories cannot be read.
pub async fn search(
    memories: &dyn Memories,
    embedder: &dyn Embedder,
    owner: &MemoryOwner,
    input: MemorySearch,
) -> Result<Recalled<MemoryHits>, Failure> {
    let (vector, not_embedded) = split(embedding(embedder, &input.text).await);
    let value = memories.search(owner, &input.into_query(vector)).await?;
    Ok(Recalled { value, not_embedded })
}
