//! What both databases do alike with definitions: which rows a write makes, and where a page ends.

use std::collections::{BTreeMap, BTreeSet};

use domain::definition::{NewDefinition, plan};
use domain::failure::Failure;
use domain::ports::{Defined, DefinitionHead, DefinitionKey, DefinitionPage, DefinitionRow, DefinitionVersion};
use schemas::api::DefinitionChange;
use schemas::definition::DefinitionKind;
use schemas::json::Json;

use crate::columns::{Columns, bad_value, count, id, name, opt_id, raw_json};

/// A definition that a write changes, and its next version.
pub(crate) struct Entry<'d> {
    pub(crate) new: &'d NewDefinition,
    pub(crate) version: u64,
    /// JSON array.
    pub(crate) project_ids: Json,
}

/// Decides on each definition by what the database has.
///
/// # Errors
/// One is there twice: which of the two would be meant?
pub(crate) fn decide<'d>(
    items: &'d [NewDefinition],
    heads: Vec<DefinitionHead>,
) -> Result<(Vec<Defined>, Vec<Entry<'d>>), Failure> {
    let heads: BTreeMap<DefinitionKey, DefinitionHead> =
        heads.into_iter().map(|head| ((head.kind, head.id.clone()), head)).collect();
    let mut seen = BTreeSet::new();
    let (mut defined, mut entries) = (Vec::with_capacity(items.len()), Vec::new());
    for new in items {
        let key = (new.kind, new.id.clone());
        let known = heads.get(&key).map(|head| (head.version, &head.content_hash));
        let (change, version) = plan::change(known, &new.content_hash);
        if change != DefinitionChange::Unchanged {
            entries.push(Entry { new, version, project_ids: Json::of(&new.project_ids) });
        }
        defined.push(Defined { change, version });
        if !seen.insert(key) {
            return Err(Failure::internal(format!("{} {} is twice in one write", new.kind.as_str(), new.id)));
        }
    }
    Ok((defined, entries))
}

/// Rows of a page: one more than `limit` was asked for, and `found` matched before those beyond the
/// bound on bytes were left out.
pub(crate) fn page(mut rows: Vec<DefinitionRow>, found: u64, limit: usize) -> DefinitionPage {
    rows.truncate(limit);
    let more = found > rows.len() as u64;
    DefinitionPage { rows, more }
}

fn hash(row: &impl Columns) -> Result<[u8; 32], Failure> {
    row.bytes("content_hash")?.try_into().map_err(|error| bad_value("content_hash", error))
}

pub(crate) fn head(row: &impl Columns) -> Result<DefinitionHead, Failure> {
    Ok(DefinitionHead {
        kind: name(row, "kind", DefinitionKind::parse)?,
        id: id(row, "id")?,
        name: row.text("name")?.to_owned(),
        version: count(row, "version")?,
        content_hash: hash(row)?,
        library_id: opt_id(row, "library_id")?,
    })
}

pub(crate) fn version(row: &impl Columns) -> Result<DefinitionVersion, Failure> {
    Ok(DefinitionVersion {
        version: count(row, "version")?,
        content_hash: hash(row)?,
        created_at_ms: row.int("created_at_ms")?,
    })
}

/// The bound that versions lie below: all of them, if none is given.
pub(crate) fn below(before: Option<u64>) -> i64 {
    before.map_or(i64::MAX, |before| i64::try_from(before).unwrap_or(i64::MAX))
}

pub(crate) fn definition(row: &impl Columns) -> Result<DefinitionRow, Failure> {
    Ok(DefinitionRow {
        kind: name(row, "kind", DefinitionKind::parse)?,
        id: id(row, "id")?,
        version: count(row, "version")?,
        content_hash: hash(row)?,
        created_at_ms: row.int("created_at_ms")?,
        updated_at_ms: row.int("updated_at_ms")?,
        content: raw_json(row, "content")?,
    })
}
