//! What both databases do alike with memories: what a write makes of the row that is there, and what
//! the columns mean.

mod find;
mod kept;
mod seen;

use domain::failure::Failure;
use domain::memory::NewMemory;
use domain::ports::{Remembered, Unembedded};
use schemas::id::MemoryId;
use schemas::limits::MEMORY_INLINE_BYTES_MAX;
use schemas::memory::{Memory, MemoryChange, MemoryOwner, MemoryTier};

use crate::columns::{Columns, bad_value, count, id, json, name};
pub(crate) use find::{Corpus, Only, found, list, search};
pub(crate) use kept::{is_of_model, kept_memory, model_of, revision, tail_columns, tail_row};
pub(crate) use seen::SeenRow;

/// A row as a write meets it.
#[derive(Debug, Clone)]
pub(crate) struct Current {
    id: MemoryId,
    version: u64,
    is_deleted: bool,
    body_hash: [u8; 32],
    content_hash: [u8; 32],
    embedding_model: Option<String>,
}

/// Columns of [`current`].
macro_rules! current_columns {
    () => {
        "SELECT m.id, m.version, m.deleted_at_ms, m.body_hash, m.content_hash, m.embedding_model FROM memories AS m "
    };
}
pub(crate) use current_columns;

pub(crate) fn current(row: &impl Columns) -> Result<Current, Failure> {
    let hash = |column: &str| -> Result<[u8; 32], Failure> {
        row.bytes(column)?.try_into().map_err(|error| bad_value(column, error))
    };
    Ok(Current {
        id: id(row, "id")?,
        version: count(row, "version")?,
        is_deleted: row.opt_int("deleted_at_ms")?.is_some(),
        body_hash: hash("body_hash")?,
        content_hash: hash("content_hash")?,
        embedding_model: row.opt_text("embedding_model")?.map(str::to_owned),
    })
}

impl Current {
    /// The id of a memory that is there.
    pub(crate) fn into_live_id(self) -> Option<MemoryId> {
        (!self.is_deleted).then_some(self.id)
    }
}

/// What a write does.
#[derive(Debug)]
pub(crate) enum Decision {
    Nothing(Remembered),
    /// The row says the same already; only its vector is put in.
    Embed(Remembered),
    Put(Put),
}

/// A row to be written.
#[derive(Debug)]
pub(crate) struct Put {
    pub(crate) done: Remembered,
    /// The content stays, and no vector comes with it: the one that is there stays, too.
    pub(crate) keeps_embedding: bool,
}

/// Decides by the rows of the memory's label and of its id (see `Memories::write`).
pub(crate) fn decide(new: &NewMemory, of_label: Option<Current>, of_id: Option<Current>) -> Decision {
    let row = of_label.or(of_id);
    let (row_id, version) = row.as_ref().map_or((&new.id, 0), |row| (&row.id, row.version));
    let done = |change, version| Remembered { change, id: row_id.clone(), version };
    if row.as_ref().is_some_and(|row| row.is_deleted) {
        return Decision::Nothing(done(MemoryChange::Gone, version));
    }
    if new.expect_version.is_some_and(|expected| expected != version) {
        return Decision::Nothing(done(MemoryChange::Conflict, version));
    }
    let Some(row) = &row else {
        return Decision::Put(Put { done: done(MemoryChange::Created, 1), keeps_embedding: false });
    };
    if row.body_hash == new.body_hash() {
        let unchanged = done(MemoryChange::Unchanged, version);
        let brings_another =
            new.embedding.as_ref().is_some_and(|new| row.embedding_model.as_deref() != Some(new.model.as_str()));
        return if brings_another { Decision::Embed(unchanged) } else { Decision::Nothing(unchanged) };
    }
    let keeps_embedding = new.embedding.is_none() && row.content_hash == new.content_hash();
    Decision::Put(Put { done: done(MemoryChange::Updated, version + 1), keeps_embedding })
}

/// What lies in the row, and whether that is all of it.
pub(crate) fn inline(content: &str) -> (&str, bool) {
    let end = content.floor_char_boundary(MEMORY_INLINE_BYTES_MAX);
    (&content[..end], end == content.len())
}

/// Where content that overflows lies. No id holds a slash: two memories never share a place.
pub(crate) fn blob_id(owner: &MemoryOwner, id: &MemoryId) -> String {
    format!("memory/{}/{id}", owner.agent_id)
}

/// Columns of [`memory`], of `memories m`.
macro_rules! memory_columns {
    () => {
        "m.id, m.version, m.label, m.tier, m.type, m.significance, m.metadata, m.content, m.content_ref, \
         m.embedding_model, m.created_at_ms, m.updated_at_ms"
    };
}
pub(crate) use memory_columns;

/// A memory without content that overflowed.
pub(crate) fn memory(owner: &MemoryOwner, row: &impl Columns) -> Result<Memory, Failure> {
    let content_ref = row.opt_text("content_ref")?.map(str::to_owned);
    let content = if content_ref.is_some() { "" } else { row.text("content")? };
    Ok(Memory {
        id: id(row, "id")?,
        namespace: owner.namespace.clone(),
        agent_id: owner.agent_id.clone(),
        label: row.opt_text("label")?.map(str::to_owned),
        tier: name(row, "tier", MemoryTier::parse)?,
        kind: row.text("type")?.to_owned(),
        content: content.to_owned(),
        content_ref,
        significance: row.float("significance")?,
        metadata: json(row, "metadata")?,
        embedding_model: row.opt_text("embedding_model")?.map(str::to_owned),
        version: count(row, "version")?,
        created_at_ms: row.int("created_at_ms")?,
        updated_at_ms: row.int("updated_at_ms")?,
    })
}

/// A memory with all its content: the column `overflow` is that of `blobs`. Content that the archive
/// alone has is empty.
pub(crate) fn whole_memory(owner: &MemoryOwner, row: &impl Columns) -> Result<Memory, Failure> {
    Ok(Memory { content: whole_content(row)?, ..memory(owner, row)? })
}

pub(crate) fn unembedded(row: &impl Columns) -> Result<Unembedded, Failure> {
    Ok(Unembedded { id: id(row, "id")?, version: count(row, "version")?, content: whole_content(row)? })
}

fn whole_content(row: &impl Columns) -> Result<String, Failure> {
    let content =
        if row.opt_text("content_ref")?.is_some() { row.opt_text("overflow")? } else { Some(row.text("content")?) };
    Ok(content.unwrap_or_default().to_owned())
}
