//! Memories in two places: in SQL, where they are written and counted, and in the archive, which has
//! their content, words and vectors for good and finds among many.
//!
//! SQL has a row for every memory. Until the archive has it, and every reader can see that, the row
//! belongs to the **tail**, and a search reads it from there. Then what overflowed goes, and the vector
//! too, unless the agent has few memories: those SQL searches alone, and sooner than the archive can.
//! `recall::ArchivedMemories` is the union of both.

use async_trait::async_trait;
use schemas::id::MemoryId;
use schemas::memory::{Memory, MemoryOwner};

use super::Memories;
use crate::failure::Failure;
use crate::memory::MemoryQuery;
use crate::memory::kept::{Candidate, Candidates, KeptMemory};

/// A row of the tail: `None` says that it was deleted.
pub type TailRow = (MemoryId, Option<Candidate>);

/// A row that waits for the archive. One that cannot be read has a place all the same, and a reason.
pub type WaitingRow = Result<KeptMemory, (Revision, Failure)>;

/// The revision of a row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Revision {
    pub owner: MemoryOwner,
    pub id: MemoryId,
    pub revision: u64,
}

/// An agent, and the model that vectors of its memories are of; `None`: there are memories without one. What has
/// none comes first, then it goes by the model's name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ModelOf {
    pub model: Option<String>,
    pub owner: MemoryOwner,
}

/// The side of SQL. Of a memory that is not in the tail, reads give no content that overflowed, and
/// `search` may know no vector.
#[async_trait]
pub trait MemoryTail: Memories {
    /// Rows of the tail, ascending by id, all `> after`.
    async fn tail(&self, owner: &MemoryOwner, after: Option<&MemoryId>, limit: usize) -> Result<Vec<TailRow>, Failure>;

    /// The given memories that there are, in any order, without content that overflowed.
    async fn some(&self, owner: &MemoryOwner, ids: &[&MemoryId]) -> Result<Vec<Memory>, Failure>;

    /// Rows whose revision is not recorded as archived, ascending by owner and id, all `> after`.
    /// Content that is in the archive alone is left out ([`KeptMemory::lacks_content`]). What a row holds
    /// fails no other row: fewer than `limit` say that none follow.
    async fn waiting_rows(&self, after: Option<&Revision>, limit: usize) -> Result<Vec<WaitingRow>, Failure>;

    /// Those of [`waiting_rows`](Self::waiting_rows) that can be read; fewer say nothing about what follows.
    async fn waiting(&self, after: Option<&Revision>, limit: usize) -> Result<Vec<KeptMemory>, Failure> {
        let rows = self.waiting_rows(after, limit).await?;
        Ok(rows.into_iter().filter_map(Result::ok).collect())
    }

    /// Records that the archive durably has these revisions. A row that changed since goes on waiting.
    async fn mark_kept(&self, kept: &[Revision]) -> Result<(), Failure>;

    /// Takes rows out of the tail that were recorded as archived at least `older_than_ms` ago by the
    /// store's own clock; at most `limit`. Those of an agent with more than `near` rows lose their
    /// vectors. Answers how many.
    async fn lighten(&self, older_than_ms: u64, near: usize, limit: usize) -> Result<u64, Failure>;

    /// Whether the agent has at most `near` rows, none of which has lost its vector: `search` then finds
    /// what there is.
    async fn is_near(&self, owner: &MemoryOwner, near: usize) -> Result<bool, Failure>;

    /// The first agent `> after` that has memories without a vector of this model. What has one is not looked at,
    /// however much that is.
    async fn lacking(&self, model: &str, after: Option<&ModelOf>) -> Result<Option<ModelOf>, Failure>;

    /// Rows outside of the tail, ascending by owner and id, all `> after`: searches of the archive rely
    /// on it for them.
    async fn settled(&self, after: Option<&Revision>, limit: usize) -> Result<Vec<Revision>, Failure>;
}

/// The side of the archive.
#[async_trait]
pub trait MemoryArchive: Send + Sync {
    /// Puts rows in, each whole; durable when it returns. A row never gives way to one of an equal or
    /// lower revision, so a repeat changes nothing. At most one writer succeeds on top of what it
    /// knows; another one fails and may repeat.
    async fn keep(&self, rows: &[KeptMemory]) -> Result<(), Failure>;

    /// Memories of one agent that may match: at least the `limit` nearest by vector, of the same model
    /// and number of dimensions, and the `limit` that fit the words best. What the query's filter
    /// says of metadata need not be held to.
    async fn candidates(&self, owner: &MemoryOwner, query: &MemoryQuery, limit: usize) -> Result<Candidates, Failure>;

    /// The given rows that there are, in any order, with all their content; deleted ones, too.
    async fn kept(&self, owner: &MemoryOwner, ids: &[&MemoryId]) -> Result<Vec<KeptMemory>, Failure>;

    /// The revisions of the given rows that there are, as stored: a double would show.
    async fn revisions(&self, owner: &MemoryOwner, ids: &[&MemoryId]) -> Result<Vec<Revision>, Failure>;
}
