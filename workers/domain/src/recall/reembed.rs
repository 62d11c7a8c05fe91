//! After a change of the embedder, and after an outage of it: vectors of its model for the memories that have none.

use schemas::id::MemoryId;
use schemas::limits::EMBEDDING_BATCH_MAX;
use schemas::memory::MemoryOwner;

use crate::failure::Failure;
use crate::memory::Embedding;
use crate::ports::{Embedder, Memories, MemoryTail, ModelOf, Unembedded};

/// A batch that failed so often is taken to be what is wrong, though the failure looks like one that passes.
const FAILURES_MAX: u32 = 4;

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
/// A memory whose content is nowhere, or which the embedder refuses for good or again and again, is passed over; the
/// next walk tries it once more.
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
    /// How often this batch has failed.
    failures: u32,
    /// Vectors of other models give way, too.
    renews: bool,
}

/// As it is where nobody has set `renew`: vectors of other models stay.
impl Default for Reembedding {
    fn default() -> Self {
        Self { at: None, after: None, behind: None, size: EMBEDDING_BATCH_MAX, failures: 0, renews: false }
    }
}

impl Reembedding {
    /// As wanted: of the memories that have no vector at all, or also of those that have one of another model.
    /// A vector that was paid for does not give way because somebody has set another embedder by mistake.
    pub fn new(renews: bool) -> Self {
        Self { renews, ..Self::default() }
    }

    /// The next batch, of one agent and of `room` texts at most, which is at least 1. `None`: the walk is at its end;
    /// the next call begins another.
    ///
    /// # Errors
    /// The embedder or the store fails; what was done before stays done. The next call tries the same memories, unless
    /// that is of no use: then it tries fewer of them, and leaves one out that fails alone.
    pub async fn go_on(
        &mut self,
        tail: &dyn MemoryTail,
        memories: &dyn Memories,
        embedder: &dyn Embedder,
        room: usize,
    ) -> Result<Option<Reembedded>, Failure> {
        let Some(ModelOf { model, owner }) = self.at(tail, embedder.model()).await? else { return Ok(None) };
        // An empty page would look like the end of this agent's memories.
        let limit = self.size.min(room.max(1));
        let rows = memories.unembedded(&owner, model.as_deref(), self.after.as_ref(), limit).await;
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
                self.failures = 0;
                Ok(Some(done))
            }
            Err(failure) => {
                self.failures += 1;
                // Some servers answer a text that is too long for them as if they were overloaded.
                if failure.retriable && self.failures < FAILURES_MAX {
                    return Err(failure);
                }
                self.failures = 0;
                match rows.len() {
                    1 => self.after = Some(last.id.clone()),
                    several => self.size = several / 2,
                }
                Err(failure)
            }
        }
    }

    /// Whose memories are next, and of which model their vectors are.
    async fn at(&mut self, tail: &dyn MemoryTail, model: &str) -> Result<Option<ModelOf>, Failure> {
        if self.at.is_none() {
            self.at = tail.lacking(model, self.behind.as_ref()).await?;
            self.after = None;
        }
        // Those without a vector come first.
        self.at.take_if(|at| at.model.is_some() && !self.renews);
        if self.at.is_none() {
            *self = Self::new(self.renews);
        }
        Ok(self.at.clone())
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
