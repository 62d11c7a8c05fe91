//! What searches need of the memories of agents that have few, kept in memory. Other processes write to them as well,
//! so each search asks which revisions there are, and reads the rows of those that it does not know.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::failure::Failure;
use domain::memory::search::{Scanned, Search};
use domain::memory::{MemoryHits, MemoryQuery};
use schemas::id::MemoryId;
use schemas::limits::MEMORIES_NEAR_MAX;
use schemas::memory::MemoryOwner;
use tokio::sync::Mutex as AsyncMutex;

use super::super::PostgresStore;
use super::super::rows::{get, id};
use super::sql;
use crate::remembering::{SeenRow, found};

/// Memory that all rows together may take, bytes. Beyond it, all but those of the last search are forgotten.
const BYTES_MAX: usize = 32 << 20;
const AGENTS_MAX: usize = 1_000;

/// Of all agents that searched lately.
#[derive(Default)]
pub(in super::super) struct Seen(Mutex<HashMap<MemoryOwner, Arc<OfAgent>>>);

#[derive(Default)]
struct OfAgent {
    /// Searches of one agent come one after the other.
    rows: AsyncMutex<Rows>,
    bytes: Mutex<usize>,
}

/// Each with the stamp that it had when it was read.
type Rows = HashMap<MemoryId, (i64, SeenRow)>;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Seen {
    fn of(&self, owner: &MemoryOwner) -> Arc<OfAgent> {
        locked(&self.0).entry(owner.clone()).or_default().clone()
    }

    /// Keeps the rows of `last` and what else has room.
    fn bound(&self, last: &MemoryOwner) {
        let mut agents = locked(&self.0);
        let bytes: usize = agents.values().map(|of_agent| *locked(&of_agent.bytes)).sum();
        if bytes > BYTES_MAX || agents.len() > AGENTS_MAX {
            agents.retain(|owner, _| owner == last);
        }
    }
}

/// `None`: the agent has too many memories to be kept here.
pub(super) async fn search(
    store: &PostgresStore,
    owner: &MemoryOwner,
    query: &MemoryQuery,
) -> Result<Option<MemoryHits>, Failure> {
    let of_agent = store.0.seen.of(owner);
    let mut rows = of_agent.rows.lock().await;
    let Some(stamps) = stamps(store, owner).await? else {
        locked(&store.0.seen.0).remove(owner);
        return Ok(None);
    };
    // A search that is given up half way leaves what is true of some revision, and the next one looks again.
    rows.retain(|id, (stamp, _)| stamps.get(id) == Some(stamp));
    let unknown: Vec<&MemoryId> = stamps.keys().filter(|id| !rows.contains_key(*id)).collect();
    read(store, owner, &unknown, &mut rows).await?;
    let mut search = Search::new(query);
    for (id, (_, row)) in rows.iter() {
        row.shown(id, |scanned: &Scanned<'_>| search.see(scanned));
    }
    *locked(&of_agent.bytes) = rows.values().map(|(_, row)| row.bytes()).sum();
    store.0.seen.bound(owner);
    drop(rows);
    found(store, owner, search, false).await.map(Some)
}

/// The stamps of all memories; `None`: there are too many.
async fn stamps(store: &PostgresStore, owner: &MemoryOwner) -> Result<Option<HashMap<MemoryId, i64>>, Failure> {
    let query = sqlx::query(sql::STAMPS).bind(owner.namespace.to_string()).bind(owner.agent_id.to_string());
    let rows = store.0.by_key.fetch_all(query.bind(MEMORIES_NEAR_MAX as i64 + 1)).await?;
    if rows.len() > MEMORIES_NEAR_MAX {
        return Ok(None);
    }
    rows.iter().map(|row| Ok((id(row, "id")?, get(row, "stamp")?))).collect::<Result<_, Failure>>().map(Some)
}

async fn read(store: &PostgresStore, owner: &MemoryOwner, ids: &[&MemoryId], into: &mut Rows) -> Result<(), Failure> {
    if ids.is_empty() {
        return Ok(());
    }
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let query = sqlx::query(sql::SCAN_SOME).bind(owner.namespace.to_string()).bind(owner.agent_id.to_string());
    for row in &store.0.by_key.fetch_all(query.bind(ids)).await? {
        into.insert(SeenRow::id_of(row)?, (get(row, "stamp")?, SeenRow::of(row)?));
    }
    Ok(())
}
