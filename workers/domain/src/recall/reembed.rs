//! After a change of the embedder, and after an outage of it: vectors of its model for the memories that have none.

use schemas::id::MemoryId;
use schemas::limits::EMBEDDING_BATCH_MAX;
use schemas::memory::MemoryOwner;

use crate::failure::Failure;
use crate::memory::Embedding;
use crate::ports::{Embedder, Memories, MemoryTail, ModelOf, Unembedded};

/// What was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reembedded {
    /// Memories that have a vector of the embedder's model now.
    pub embedded: u64,
    /// Memories that changed meanwhile. Whoever changed them embedded them.
    pub overtaken: u64,
}

impl Reembedded {
    /// Texts that the embedder was asked for.
    pub fn texts(&self) -> u64 {
        self.embedded + self.overtaken
    }
}

/// A walk over the memories, of all agents, that have no vector of the embedder's model. Searches go on
/// meanwhile, and find what is not done yet by its words. It may be stopped at any point and begun
/// again: what is done stays done, and is not looked at again.
///
/// A memory whose content is nowhere, or which the embedder refuses for good, is passed over; the next walk tries it
/// once more.
#[derive(Debug, Clone)]
pub struct Reembedding {
    /// Whose memories are at hand.
    at: Option<ModelOf>,
    /// The last of them that was looked at.
    after: Option<MemoryId>,
    /// The last agent whose memories were.
    behind: Option<ModelOf>,
    /// Memories of a batch.
    size: usize,
}

impl Default for Reembedding {
    fn default() -> Self {
        Self { at: None, after: None, behind: None, size: EMBEDDING_BATCH_MAX }
    }
}

impl Reembedding {
    /// The next batch, of one agent. `None`: the walk is at its end; the next call begins another.
    ///
    /// # Errors
    /// The embedder or the store fails; what was done before stays done. The next call tries the same memories, unless
    /// that is of no use: then it tries fewer of them, and leaves one out that fails alone.
    pub async fn go_on(
        &mut self,
        tail: &dyn MemoryTail,
        memories: &dyn Memories,
        embedder: &dyn Embedder,
    ) -> Result<Option<Reembedded>, Failure> {
        let Some(owner) = self.owner(tail, embedder.model()).await? else { return Ok(None) };
        let rows = memories.unembedded(&owner, embedder.model(), self.after.as_ref(), self.size).await;
        let rows = rows.inspect_err(|failure| {
            if !failure.retriable {
                self.leave();
            }
        })?;
        let Some(last) = rows.last() else {
            self.leave();
            return Ok(Some(Reembedded::default()));
        };
        match embed(memories, embedder, &owner, &rows).await {
            Ok(done) => {
                self.after = Some(last.id.clone());
                self.size = (2 * self.size).min(EMBEDDING_BATCH_MAX);
                Ok(Some(done))
            }
            Err(failure) => {
                match rows.len() {
                    _ if failure.retriable => {}
                    1 => self.after = Some(last.id.clone()),
                    several => self.size = several / 2,
                }
                Err(failure)
            }
        }
    }

    /// Whose memories are next.
    async fn owner(&mut self, tail: &dyn MemoryTail, model: &str) -> Result<Option<MemoryOwner>, Failure> {
        if self.at.is_none() {
            self.at = tail.lacking(model, self.behind.as_ref()).await?;
            self.after = None;
        }
        if self.at.is_none() {
            *self = Self::default();
        }
        Ok(self.at.as_ref().map(|at| at.owner.clone()))
    }

    fn leave(&mut self) {
        self.behind = self.at.take();
    }
}

async fn embed(
    memories: &dyn Memories,
    embedder: &dyn Embedder,
    owner: &MemoryOwner,
    rows: &[Unembedded],
) -> Result<Reembedded, Failure> {
    let texts: Vec<&str> = rows.iter().map(|row| row.content.as_str()).collect();
    let vectors = embedder.embed(&texts).await?;
    if vectors.len() != rows.len() {
        let (model, texts, got) = (embedder.model(), rows.len(), vectors.len());
        return Err(Failure::internal(format!("{model} gave {got} vectors for {texts} texts")));
    }
    let mut done = Reembedded::default();
    for (row, vector) in rows.iter().zip(vectors) {
        let embedding = Embedding { model: embedder.model().to_owned(), vector };
        match memories.embed(owner, &row.id, row.version, &embedding).await? {
            true => done.embedded += 1,
            false => done.overtaken += 1,
        }
    }
    Ok(done)
}
