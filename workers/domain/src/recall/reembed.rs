//! After a change of the embedder: vectors of the new model for the memories of one agent.

use schemas::limits::EMBEDDING_BATCH_MAX;
use schemas::memory::MemoryOwner;

use crate::failure::Failure;
use crate::memory::Embedding;
use crate::ports::{Embedder, Memories};

/// What was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reembedded {
    /// Memories that have a vector of the embedder's model now.
    pub embedded: u64,
    /// Memories that changed meanwhile. Whoever changed them embedded them.
    pub overtaken: u64,
}

/// Embeds every memory of the agent that has no vector of the embedder's model. Searches go on
/// meanwhile, and find what is not done yet by its words. It may be stopped at any point and begun
/// again: what is done stays done.
///
/// # Errors
/// The embedder or the store fails; what was done before stays done.
pub async fn reembed(
    memories: &dyn Memories,
    embedder: &dyn Embedder,
    owner: &MemoryOwner,
) -> Result<Reembedded, Failure> {
    let mut done = Reembedded::default();
    let mut after = None;
    loop {
        let rows = memories.unembedded(owner, embedder.model(), after.as_ref(), EMBEDDING_BATCH_MAX).await?;
        let Some(last) = rows.last() else { return Ok(done) };
        after = Some(last.id.clone());
        let texts: Vec<&str> = rows.iter().map(|row| row.content.as_str()).collect();
        let vectors = embedder.embed(&texts).await?;
        if vectors.len() != rows.len() {
            let (model, texts, got) = (embedder.model(), rows.len(), vectors.len());
            return Err(Failure::internal(format!("{model} gave {got} vectors for {texts} texts")));
        }
        for (row, vector) in rows.iter().zip(vectors) {
            let embedding = Embedding { model: embedder.model().to_owned(), vector };
            match memories.embed(owner, &row.id, row.version, &embedding).await? {
                true => done.embedded += 1,
                false => done.overtaken += 1,
            }
        }
    }
}
