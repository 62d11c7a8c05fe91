//! `memories`: what agents remember, one row per `(namespace, agent, id)` (SPEC W-MEM-01). A deleted one
//! keeps its names and revision. Vectors have columns of their own (`vectors.rs`).

use domain::failure::Failure;
use domain::memory::Embedding;
use domain::memory::kept::{Candidate, KeptMemory};
use domain::memory::terms::spaced;
use domain::ports::Revision;
use domain::time::rfc3339;
use schemas::json::Json;
use schemas::limits::MEMORY_INLINE_BYTES_MAX;
use schemas::memory::{Memory, MemoryOwner, MemoryTier};

use super::{Cell, Column, Kind, Table};
use crate::cells::Cells;

/// Columns that name one row.
pub const KEY: [&str; 3] = ["namespace", "agent_id", "id"];

pub const LIVE: &str = "live";
const DELETED: &str = "deleted";

/// A column that a deleted memory has nothing in.
fn of<'a>(row: &'a KeptMemory, cell: impl FnOnce(&'a Memory) -> Cell<'a>) -> Cell<'a> {
    row.memory.as_ref().map_or(Cell::Null, cell)
}

fn number(row: &KeptMemory, value: impl FnOnce(&Memory) -> i64) -> Cell<'_> {
    Cell::Int(row.memory.as_ref().map_or(0, value))
}

/// What the full-text index reads: the words of label and content, as searches tell them apart.
fn words(row: &KeptMemory) -> Cell<'_> {
    let Some(memory) = &row.memory else { return Cell::text("") };
    let beginning = &memory.content[..memory.content.floor_char_boundary(MEMORY_INLINE_BYTES_MAX)];
    Cell::owned(spaced(memory.label.as_deref().into_iter().chain([beginning])))
}

pub static MEMORIES: Table<KeptMemory> = Table {
    name: "memories",
    columns: &[
        Column { name: "id", kind: Kind::Text, cell: |r| Cell::text(r.id.as_str()) },
        Column { name: "agent_id", kind: Kind::Text, cell: |r| Cell::text(r.owner.agent_id.as_str()) },
        Column { name: "label", kind: Kind::TextOrNull, cell: |r| of(r, |m| Cell::maybe(m.label.as_deref())) },
        Column { name: "tier", kind: Kind::TextOrNull, cell: |r| of(r, |m| Cell::text(m.tier.as_str())) },
        Column { name: "type", kind: Kind::TextOrNull, cell: |r| of(r, |m| Cell::text(&m.kind)) },
        // As callers see it: empty if it overflowed (SPEC W-MEM-02).
        Column {
            name: "content",
            kind: Kind::TextOrNull,
            cell: |r| of(r, |m| Cell::text(if m.content_ref.is_some() { "" } else { &m.content })),
        },
        Column {
            name: "content_ref",
            kind: Kind::TextOrNull,
            cell: |r| of(r, |m| Cell::maybe(m.content_ref.as_deref())),
        },
        Column {
            name: "overflow",
            kind: Kind::TextOrNull,
            cell: |r| of(r, |m| Cell::maybe(m.content_ref.as_ref().map(|_| m.content.as_str()))),
        },
        Column { name: "words", kind: Kind::Text, cell: words },
        Column {
            name: "significance",
            kind: Kind::Double,
            cell: |r| Cell::Double(r.memory.as_ref().map_or(0.0, |m| m.significance)),
        },
        Column {
            name: "metadata",
            kind: Kind::TextOrNull,
            cell: |r| of(r, |m| Cell::owned(Json::of(&m.metadata).as_str().to_owned())),
        },
        Column {
            name: "embedding_model",
            kind: Kind::TextOrNull,
            cell: |r| of(r, |m| Cell::maybe(m.embedding_model.as_deref())),
        },
        Column {
            name: "created_at",
            kind: Kind::TextOrNull,
            cell: |r| of(r, |m| Cell::owned(rfc3339(m.created_at_ms))),
        },
        Column {
            name: "updated_at",
            kind: Kind::TextOrNull,
            cell: |r| of(r, |m| Cell::owned(rfc3339(m.updated_at_ms))),
        },
        Column { name: "created_at_ms", kind: Kind::Long, cell: |r| number(r, |m| m.created_at_ms) },
        Column { name: "updated_at_ms", kind: Kind::Long, cell: |r| number(r, |m| m.updated_at_ms) },
        Column {
            name: "status",
            kind: Kind::Text,
            cell: |r| Cell::text(if r.memory.is_some() { LIVE } else { DELETED }),
        },
        Column { name: "namespace", kind: Kind::Text, cell: |r| Cell::text(r.owner.namespace.as_str()) },
        Column { name: "version", kind: Kind::Long, cell: |r| Cell::count(r.memory.as_ref().map_or(0, |m| m.version)) },
        Column { name: "revision", kind: Kind::Long, cell: |r| Cell::count(r.revision) },
    ],
    read: &[
        "id",
        "agent_id",
        "label",
        "tier",
        "type",
        "content",
        "content_ref",
        "overflow",
        "significance",
        "metadata",
        "embedding_model",
        "created_at_ms",
        "updated_at_ms",
        "status",
        "namespace",
        "version",
        "revision",
    ],
    indexed: &["agent_id"],
    searched: &["words"],
};

/// What a search looks at.
pub const SEEN: [&str; 7] = ["id", "tier", "type", "significance", "metadata", "updated_at_ms", "words"];

/// Rows as a search sees them; `vector` reads the vector of a row.
pub fn candidates(
    cells: &Cells<'_>,
    vector: impl Fn(usize) -> Result<Option<Embedding>, Failure>,
) -> Result<Vec<Candidate>, Failure> {
    let candidate = |row: usize| {
        Ok(Candidate {
            id: cells.id("id", row)?,
            tier: tier(cells, row)?,
            kind: text(cells, "type", row)?,
            significance: cells.double("significance", row)?,
            metadata: text(cells, "metadata", row)?,
            updated_at_ms: cells.long("updated_at_ms", row)?.unwrap_or_default(),
            text: text(cells, "words", row)?,
            embedding: vector(row)?,
        })
    };
    (0..cells.rows()).map(candidate).collect()
}

/// Whole rows.
pub fn decode(
    cells: &Cells<'_>,
    vector: impl Fn(usize) -> Result<Option<Embedding>, Failure>,
) -> Result<Vec<KeptMemory>, Failure> {
    let mut rows = Vec::with_capacity(cells.rows());
    for (row, Revision { owner, id, revision }) in revisions(cells)?.into_iter().enumerate() {
        let is_live = cells.text("status", row)? == Some(LIVE);
        let memory = if is_live { Some(memory(cells, row, &owner)?) } else { None };
        rows.push(KeptMemory { owner, id, revision, memory, embedding: vector(row)? });
    }
    Ok(rows)
}

fn memory(cells: &Cells<'_>, row: usize, owner: &MemoryOwner) -> Result<Memory, Failure> {
    let metadata = text(cells, "metadata", row)?;
    let content_ref = cells.text("content_ref", row)?.map(str::to_owned);
    let content = if content_ref.is_some() { "overflow" } else { "content" };
    Ok(Memory {
        id: cells.id("id", row)?,
        namespace: owner.namespace.clone(),
        agent_id: owner.agent_id.clone(),
        label: cells.text("label", row)?.map(str::to_owned),
        tier: tier(cells, row)?,
        kind: text(cells, "type", row)?,
        content: text(cells, content, row)?,
        content_ref,
        significance: cells.double("significance", row)?,
        metadata: serde_json::from_str(&metadata).map_err(|why| cells.bad("metadata", row, &why.to_string()))?,
        embedding_model: cells.text("embedding_model", row)?.map(str::to_owned),
        version: cells.count("version", row)?,
        created_at_ms: cells.long("created_at_ms", row)?.unwrap_or_default(),
        updated_at_ms: cells.long("updated_at_ms", row)?.unwrap_or_default(),
    })
}

/// Which rows, in which revision.
pub fn revisions(cells: &Cells<'_>) -> Result<Vec<Revision>, Failure> {
    let revision = |row: usize| {
        let owner = MemoryOwner { namespace: cells.id("namespace", row)?, agent_id: cells.id("agent_id", row)? };
        Ok(Revision { owner, id: cells.id("id", row)?, revision: cells.count("revision", row)? })
    };
    (0..cells.rows()).map(revision).collect()
}

fn text(cells: &Cells<'_>, name: &str, row: usize) -> Result<String, Failure> {
    Ok(cells.text(name, row)?.unwrap_or_default().to_owned())
}

fn tier(cells: &Cells<'_>, row: usize) -> Result<MemoryTier, Failure> {
    let name = cells.text("tier", row)?.unwrap_or_default();
    MemoryTier::parse(name).ok_or_else(|| cells.bad("tier", row, "is no tier"))
}
