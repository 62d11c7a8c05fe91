//! What searches need of the memories of agents that have few, kept in memory. This process alone writes
//! to its file, so it knows what changes: a row that was written is read again by the next search.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::failure::Failure;
use domain::memory::search::{Scanned, Search};
use domain::memory::{MemoryHits, MemoryQuery};
use schemas::id::MemoryId;
use schemas::limits::{MEMORIES_NEAR_MAX, MEMORY_SCAN_PAGE};
use schemas::memory::MemoryOwner;
use sqlx::sqlite::SqliteRow;
use tokio::sync::Mutex as AsyncMutex;

use super::super::SqliteStore;
use crate::remembering::{Corpus, SeenRow, found};

/// Memory that all rows together may take, bytes. Beyond it, all but those of the last search are forgotten.
const BYTES_MAX: usize = 32 << 20;
const AGENTS_MAX: usize = 1_000;
/// Rows that are read again one by one; of more, all are.
const CHANGES_MAX: usize = 200;

/// Of all agents that searched lately.
#[derive(Default)]
pub(in super::super) struct Seen(Mutex<HashMap<MemoryOwner, Arc<OfAgent>>>);

#[derive(Default)]
struct OfAgent {
    /// Searches of one agent come one after the other.
    rows: AsyncMutex<Option<Rows>>,
    /// Written since the rows were read.
    changed: Mutex<Vec<MemoryId>>,
    bytes: Mutex<usize>,
}

type Rows = HashMap<MemoryId, SeenRow>;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Seen {
    fn of(&self, owner: &MemoryOwner) -> Arc<OfAgent> {
        locked(&self.0).entry(owner.clone()).or_default().clone()
    }

    /// A row was written: after its commit, and before anybody is told.
    pub(in super::super) fn changed(&self, owner: &MemoryOwner, id: &MemoryId) {
        if let Some(of_agent) = locked(&self.0).get(owner) {
            let mut changed = locked(&of_agent.changed);
            if changed.len() <= CHANGES_MAX {
                changed.push(id.clone());
            }
        }
    }

    pub(in super::super) fn forget(&self, owner: &MemoryOwner) {
        locked(&self.0).remove(owner);
    }

    pub(in super::super) fn forget_all(&self) {
        locked(&self.0).clear();
    }

    /// Keeps the rows of `last` and what else has room.
    fn bound(&self, last: &MemoryOwner) {
        let mut agents = locked(&self.0);
        let bytes: usize = agents.values().map(|of_agent| *locked(&of_agent.bytes)).sum();
        if bytes > BYTES_MAX || agents.len() > AGENTS_MAX {
            agents.retain(|owner, _| owner == last);
        }
    }

    /// Agents whose rows are kept, and the bytes that all of these take.
    #[cfg(test)]
    pub(in super::super) fn kept(&self) -> (usize, usize) {
        let agents = locked(&self.0);
        (agents.len(), agents.values().map(|of_agent| *locked(&of_agent.bytes)).sum())
    }
}

/// Carries a write out to its end, with what it says here, though its caller may go away half way: nobody
/// could say then whether it is committed.
pub(super) async fn whole<T: Send + 'static>(
    write: impl Future<Output = Result<T, Failure>> + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::spawn(write).await;
    done.unwrap_or_else(|error| Err(Failure::in_doubt(format!("a write of memories broke off: {error}"))))
}

/// `None`: the agent has too many memories to be kept here.
pub(super) async fn search(
    store: &SqliteStore,
    owner: &MemoryOwner,
    query: &MemoryQuery,
) -> Result<Option<MemoryHits>, Failure> {
    let of_agent = store.0.seen.of(owner);
    let mut place = of_agent.rows.lock().await;
    // Taken out: a search that is given up half way leaves nothing that is half way.
    let known = place.take();
    let changed = std::mem::take(&mut *locked(&of_agent.changed));
    let was_known = known.is_some();
    let rows = match known {
        Some(rows) if changed.len() <= CHANGES_MAX => again(store, owner, rows, &changed).await?,
        _ => load(store, owner).await?,
    };
    let Some(rows) = rows else {
        store.0.seen.forget(owner);
        return Ok(None);
    };
    let mut search = Search::new(query);
    for (id, row) in &rows {
        row.shown(id, |scanned: &Scanned<'_>| search.see(scanned));
    }
    if !was_known || !changed.is_empty() {
        *locked(&of_agent.bytes) = rows.values().map(SeenRow::bytes).sum();
        store.0.seen.bound(owner);
    }
    *place = Some(rows);
    drop(place);
    found(store, owner, search, false).await.map(Some)
}

/// `None`: there are too many.
async fn load(store: &SqliteStore, owner: &MemoryOwner) -> Result<Option<Rows>, Failure> {
    let mut rows = Rows::new();
    let mut after = String::new();
    loop {
        let page = Corpus::scan(store, owner, &after, i64::MIN).await?;
        let is_last = page.len() < MEMORY_SCAN_PAGE;
        take(&mut rows, &page)?;
        if rows.len() > MEMORIES_NEAR_MAX {
            return Ok(None);
        }
        match page.last() {
            Some(last) if !is_last => after = SeenRow::id_of(last)?.to_string(),
            _ => return Ok(Some(rows)),
        }
    }
}

/// `None`: there are too many by now.
async fn again(
    store: &SqliteStore,
    owner: &MemoryOwner,
    mut rows: Rows,
    changed: &[MemoryId],
) -> Result<Option<Rows>, Failure> {
    if changed.is_empty() {
        return Ok(Some(rows));
    }
    for id in changed {
        rows.remove(id);
    }
    take(&mut rows, &store.scan_some(owner, changed).await?)?;
    Ok((rows.len() <= MEMORIES_NEAR_MAX).then_some(rows))
}

fn take(rows: &mut Rows, page: &[SqliteRow]) -> Result<(), Failure> {
    for row in page {
        rows.insert(SeenRow::id_of(row)?, SeenRow::of(row)?);
    }
    Ok(())
}
