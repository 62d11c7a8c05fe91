//! What agents remember.
//!
//! Whose memories are meant is the first argument of every call: it comes from the execution context,
//! and no call reaches a row of another agent or namespace. Memories are kept in SQL: a committed row
//! is readable, and found, at once.

use async_trait::async_trait;
use schemas::id::MemoryId;
use schemas::memory::{Memory, MemoryChange, MemoryOwner};

use crate::failure::Failure;
use crate::memory::{Embedding, MemoryFilter, MemoryHits, MemoryKey, MemoryQuery, NewMemory};

/// What became of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remembered {
    pub change: MemoryChange,
    /// Of the row that was meant: with a label, that may be another one than was given.
    pub id: MemoryId,
    /// As it is now.
    pub version: u64,
}

/// A page of memories, the latest changed first.
#[derive(Debug, Clone)]
pub struct MemoryListQuery {
    pub filter: MemoryFilter,
    /// Only what follows this place: when a memory was changed, and its id.
    pub after: Option<(i64, MemoryId)>,
    pub limit: usize,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct MemoryPage {
    pub rows: Vec<Memory>,
    /// Where the next page begins. A page may end before it is full, once
    /// `limits::MEMORIES_SCANNED_MAX` rows were looked at.
    pub next: Option<(i64, MemoryId)>,
}

/// A memory without a vector, or with one of a model that is not asked any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unembedded {
    pub id: MemoryId,
    pub version: u64,
    /// All of it, wherever it lies.
    pub content: String,
}

#[async_trait]
pub trait Memories: Send + Sync {
    /// Writes a memory whole, durable when it returns: row, overflow and vector in one transaction.
    ///
    /// The row that is written is the agent's row of this label, if the memory has one and there is
    /// such a row; else the row of this id; else a new one. Nothing is written if the row
    /// - says the same already (`Unchanged`; a vector that was missing, or is of another model, is
    ///   put in nevertheless),
    /// - has another version than expected, or there is none although one is expected (`Conflict`),
    /// - of this id was deleted (`Gone`): a late repeat of a write must not undo a deletion.
    ///
    /// Without a vector, a row whose content stays keeps the one it has, else it has none. Content of
    /// more than `limits::MEMORY_INLINE_BYTES_MAX` overflows. Writers of one agent come one after the
    /// other, so that versions have no gaps and a label is there once.
    async fn write(&self, owner: &MemoryOwner, memory: &NewMemory) -> Result<Remembered, Failure>;

    /// A memory with its content, wherever that lies.
    async fn read(&self, owner: &MemoryOwner, key: &MemoryKey) -> Result<Option<Memory>, Failure>;

    /// The memories that match best (`domain::memory::search`), out of those that pass the filter
    /// and are among the agent's newest `limits::MEMORIES_SCANNED_MAX`. Vectors of one model are
    /// compared; memories of another model, or without a vector, are found by their words alone. Of
    /// overflowed content, the first `limits::MEMORY_INLINE_BYTES_MAX` bytes are searched for words,
    /// and the hit has none of it: read it.
    async fn search(&self, owner: &MemoryOwner, query: &MemoryQuery) -> Result<MemoryHits, Failure>;

    /// Content that overflowed is left out.
    async fn list(&self, owner: &MemoryOwner, query: &MemoryListQuery) -> Result<MemoryPage, Failure>;

    /// Forgets a memory, its content and its vector; its label is free. `false`: there is none.
    async fn delete(&self, owner: &MemoryOwner, key: &MemoryKey) -> Result<bool, Failure>;

    /// Memories whose vector is `of` this model, or that have none (`None`), ascending by id, all `> after`. One
    /// whose content cannot be had is left out; none at all are told only if none follow.
    async fn unembedded(
        &self,
        owner: &MemoryOwner,
        of: Option<&str>,
        after: Option<&MemoryId>,
        limit: usize,
    ) -> Result<Vec<Unembedded>, Failure>;

    /// Puts a vector in, unless the memory changed since that version. It counts as no change.
    async fn embed(
        &self,
        owner: &MemoryOwner,
        id: &MemoryId,
        version: u64,
        embedding: &Embedding,
    ) -> Result<bool, Failure>;
}
