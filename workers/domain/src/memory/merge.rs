//! Rows of one memory from two places: what was written lately and what is kept for good. A write is
//! readable at once, and a deletion hides what was kept before (read your writes).

use std::collections::BTreeMap;

use schemas::id::MemoryId;

/// One version of a memory; `None` says that it was deleted.
#[derive(Debug, Clone, PartialEq)]
pub struct Versioned<T> {
    pub id: MemoryId,
    pub version: u64,
    pub row: Option<T>,
}

/// The memories that there are, in the order of their ids: of each, the newest version, unless that
/// is its deletion. Every fresh row must be there, and not only those that match a search: a row that
/// no longer matches must hide the older one that does.
///
/// Equal versions are equal rows; the fresh one is taken.
pub fn union<T>(
    fresh: impl IntoIterator<Item = Versioned<T>>,
    archived: impl IntoIterator<Item = Versioned<T>>,
) -> Vec<(MemoryId, T)> {
    let mut newest: BTreeMap<MemoryId, (u64, Option<T>)> = BTreeMap::new();
    for one in fresh.into_iter().chain(archived) {
        match newest.get(&one.id) {
            Some((version, _)) if *version >= one.version => {}
            _ => {
                newest.insert(one.id, (one.version, one.row));
            }
        }
    }
    newest.into_iter().filter_map(|(id, (_, row))| Some((id, row?))).collect()
}
