//! `memory.update`: part of a memory changes, whoever else writes meanwhile.

use schemas::limits::MEMORY_UPDATE_TRIES_MAX;
use schemas::memory::{MemoryChange, MemoryOwner};

use super::{Recalled, embedding, split};
use crate::failure::Failure;
use crate::memory::input::MemoryUpdate;
use crate::ports::{Embedder, Memories, Remembered};

/// `None`: there is no such memory.
///
/// # Errors
/// The change is not stored, or that is in doubt; others wrote the memory again and again.
pub async fn update(
    memories: &dyn Memories,
    embedder: &dyn Embedder,
    owner: &MemoryOwner,
    input: &MemoryUpdate,
) -> Result<Option<Recalled<Remembered>>, Failure> {
    let (vector, not_embedded) = match &input.content {
        Some(content) => split(embedding(embedder, content).await),
        None => (None, None),
    };
    for _ in 0..MEMORY_UPDATE_TRIES_MAX {
        let Some(memory) = memories.read(owner, &input.key).await? else { return Ok(None) };
        let value = memories.write(owner, &input.over(memory, vector.clone())).await?;
        match value.change {
            // It was read a moment ago: somebody changed it, or deleted it, in between.
            MemoryChange::Conflict | MemoryChange::Gone => {}
            _ => return Ok(Some(Recalled { value, not_embedded })),
        }
    }
    Err(Failure::unavailable("others keep writing this memory; try again"))
}
