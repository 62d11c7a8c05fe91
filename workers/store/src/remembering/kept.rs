//! Rows on their way to the archive, and rows of the tail.

use domain::failure::Failure;
use domain::memory::Embedding;
use domain::memory::kept::{Candidate, KeptMemory};
use domain::memory::vector::from_bytes;
use domain::ports::{ModelOf, Revision, TailRow};
use schemas::memory::{MemoryOwner, MemoryTier};

use super::whole_memory;
use crate::columns::{Columns, bad_value, count, id, name};

/// Columns of [`tail_row`].
macro_rules! tail_columns {
    () => {
        "id, label, tier, type, significance, metadata, content, embedding, embedding_model, updated_at_ms, \
         deleted_at_ms"
    };
}
pub(crate) use tail_columns;

pub(crate) fn tail_row(row: &impl Columns) -> Result<TailRow, Failure> {
    if row.opt_int("deleted_at_ms")?.is_some() {
        return Ok((id(row, "id")?, None));
    }
    let (label, content) = (row.opt_text("label")?, row.text("content")?);
    let candidate = Candidate {
        id: id(row, "id")?,
        tier: name(row, "tier", MemoryTier::parse)?,
        kind: row.text("type")?.to_owned(),
        significance: row.float("significance")?,
        metadata: row.text("metadata")?.to_owned(),
        updated_at_ms: row.int("updated_at_ms")?,
        text: label.map_or_else(|| content.to_owned(), |label| format!("{label}\n{content}")),
        embedding: embedding(row)?,
    };
    Ok((candidate.id.clone(), Some(candidate)))
}

/// The row has the columns of [`whole_memory`], those of [`revision`], and the vector. If what it holds
/// cannot be read, that is told beside its place, and rows after it are reached.
pub(crate) fn kept_memory(row: &impl Columns) -> Result<Result<KeptMemory, (Revision, Failure)>, Failure> {
    let at = revision(row)?;
    Ok(decoded(&at, row).map_err(|failure| (at, failure)))
}

fn decoded(at: &Revision, row: &impl Columns) -> Result<KeptMemory, Failure> {
    let Revision { owner, id, revision } = at.clone();
    let is_deleted = row.opt_int("deleted_at_ms")?.is_some();
    let memory = if is_deleted { None } else { Some(whole_memory(&owner, row)?) };
    Ok(KeptMemory { owner, id, revision, memory, embedding: embedding(row)? })
}

pub(crate) fn revision(row: &impl Columns) -> Result<Revision, Failure> {
    let owner = MemoryOwner { namespace: id(row, "namespace")?, agent_id: id(row, "agent_id")? };
    Ok(Revision { owner, id: id(row, "id")?, revision: count(row, "revision")? })
}

/// The column `model` is empty where there is no vector.
pub(crate) fn model_of(row: &impl Columns) -> Result<ModelOf, Failure> {
    let owner = MemoryOwner { namespace: id(row, "namespace")?, agent_id: id(row, "agent_id")? };
    let model = row.text("model")?;
    Ok(ModelOf { model: (!model.is_empty()).then(|| model.to_owned()), owner })
}

/// Whether it is the model that is to be passed over.
pub(crate) fn is_of_model(row: Option<&impl Columns>, model: &str) -> Result<bool, Failure> {
    row.map_or(Ok(false), |row| Ok(row.text("model")? == model))
}

fn embedding(row: &impl Columns) -> Result<Option<Embedding>, Failure> {
    let (Some(model), Some(bytes)) = (row.opt_text("embedding_model")?, row.opt_bytes("embedding")?) else {
        return Ok(None);
    };
    let vector = from_bytes(bytes).ok_or_else(|| bad_value("embedding", "it is no vector"))?;
    Ok(Some(Embedding { model: model.to_owned(), vector }))
}
