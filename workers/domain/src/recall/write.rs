//! `memory.write`: store, index and embed, as one operation (SPEC W-MEM-05).

use schemas::id::MemoryId;
use schemas::memory::MemoryOwner;

use super::{Recalled, embedding, split};
use crate::failure::Failure;
use crate::memory::NewMemory;
use crate::memory::input::MemoryWrite;
use crate::ports::{Embedder, Memories, Remembered};

/// `made` is the id of a new memory if the input names none: derive it from where the call is made, so
/// that a repeat after a crash is the same write.
///
/// # Errors
/// The memory is not stored, or that is in doubt.
pub async fn write(
    memories: &dyn Memories,
    embedder: &dyn Embedder,
    owner: &MemoryOwner,
    input: MemoryWrite,
    made: MemoryId,
) -> Result<Recalled<Remembered>, Failure> {
    keep(memories, embedder, owner, input.into_new(made)).await
}

/// The same for what was made here, and need not be checked.
///
/// # Errors
/// As for [`write`].
pub async fn keep(
    memories: &dyn Memories,
    embedder: &dyn Embedder,
    owner: &MemoryOwner,
    memory: NewMemory,
) -> Result<Recalled<Remembered>, Failure> {
    let (embedding, not_embedded) = split(embedding(embedder, &memory.content).await);
    let value = memories.write(owner, &NewMemory { embedding, ..memory }).await?;
    Ok(Recalled { value, not_embedded })
}
