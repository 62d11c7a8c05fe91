//! PostgreSQL: the store of a fleet. Acceptance, commits, reads of single sessions and the looks of
//! shards gather into batches, each of which is one transaction on a connection of its own; everything
//! else is single statements on a pool.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use domain::failure::Failure;
use domain::fleet_time::Look;
use domain::ports::Clock;
use schemas::id::Shard;

mod accept;
mod commit;
mod connect;
mod conversations;
mod definitions;
mod failure;
mod journal;
mod leases;
mod ledger;
mod link;
mod lookup;
mod memories;
mod open;
mod operations;
mod pool;
mod rows;
mod scan;
mod sessions;
mod talk;
mod time;
mod tokens;
mod transcripts;
mod writer;

#[cfg(test)]
mod tests;

pub(crate) use open::MIGRATIONS;

use crate::batch::Queue;
use crate::open::Versions;

/// Transactions of commits that run side by side. A shard always goes through the same one.
const COMMIT_WRITERS: usize = 2;

/// The store in one database. Clones share connections and batches.
#[derive(Clone)]
pub struct PostgresStore(Arc<Inner>);

struct Inner {
    /// Fixed when the store was created.
    shards: u16,
    clock: Arc<dyn Clock>,
    /// Reads of one thing or of its neighbours, by an index.
    by_key: pool::Pool,
    /// Other reads, marks and upkeep.
    pool: pool::Pool,
    /// Leases have a connection of their own: no slow read may cost a shard.
    leases: pool::Pool,
    writers: Vec<Arc<writer::Writer>>,
    /// Of definitions; it is among `writers` too.
    defining: Arc<writer::Writer>,
    /// Of conversations and results; it is among `writers` too.
    talking: Arc<writer::Writer>,
    /// Of memories; likewise.
    remembering: Arc<writer::Writer>,
    seen: memories::Seen,
    accepts: Queue<accept::Call>,
    commits: [Queue<commit::Call>; COMMIT_WRITERS],
    lookups: Queue<lookup::Call>,
    pending: Queue<scan::Call<scan::Pending>>,
    due: Queue<scan::Call<scan::Due>>,
    /// Rows of the journal that were deleted, and whose room was not given back yet.
    trimmed: AtomicU64,
}

impl PostgresStore {
    /// Closes all connections. Calls that come later fail as unavailable.
    pub async fn close(&self) {
        self.0.by_key.close().await;
        self.0.pool.close().await;
        self.0.leases.close().await;
        for writer in &self.0.writers {
            writer.close().await;
        }
    }

    /// Whether the database answers.
    ///
    /// # Errors
    /// It does not.
    pub async fn ping(&self) -> Result<(), Failure> {
        self.0.pool.fetch_one(sqlx::query(PING)).await.map(drop)
    }

    /// What the store runs on.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn versions(&self) -> Result<Versions, Failure> {
        let row = self.0.pool.fetch_one(sqlx::query(VERSIONS)).await?;
        let server: String = rows::get(&row, "server")?;
        Ok(Versions { database: format!("PostgreSQL {server}"), schema: rows::get(&row, "schema")? })
    }

    /// Milliseconds by which the database's clock is ahead of this machine's, give or take half of
    /// the time that the question takes; 0 if it is no more than that.
    ///
    /// # Errors
    /// The database does not answer, or too slowly to tell the time by it.
    pub async fn clock_offset_ms(&self) -> Result<i64, Failure> {
        // The first answer may wait for a connection; the second one counts.
        self.ping().await?;
        let before = self.0.clock.now_ms();
        let row = self.0.pool.fetch_one(sqlx::query(NOW)).await?;
        let after = self.0.clock.now_ms();
        let look = Look { before_ms: before, told_ms: rows::get(&row, "now_ms")?, after_ms: after };
        let slow = || Failure::unavailable("the database takes too long to say what time it is");
        look.ahead_ms().ok_or_else(slow)
    }

    /// How many connections a process may have open.
    #[cfg(test)]
    fn connections_max(&self) -> usize {
        let pools = [&self.0.by_key, &self.0.pool, &self.0.leases];
        pools.iter().map(|pool| pool.size()).sum::<usize>() + self.0.writers.len()
    }

    fn check_shard(&self, shard: Shard) -> Result<(), Failure> {
        if shard.0 < self.0.shards {
            return Ok(());
        }
        Err(Failure::internal(format!("there is no shard {shard}: the store has {} shards", self.0.shards)))
    }
}

const PING: &str = "SELECT 1";
const NOW: &str = concat!("SELECT ", rows::now!(), " AS now_ms");
const VERSIONS: &str = "
    SELECT current_setting('server_version') AS server,
        (SELECT coalesce(max(version), 0) FROM _sqlx_migrations WHERE success) AS schema";

/// All SQL of this module, for the tests that prepare and explain it.
#[cfg(test)]
fn statements() -> Vec<(&'static str, &'static str)> {
    let own = &[("ping", PING), ("now", NOW), ("versions", VERSIONS)][..];
    [
        own,
        accept::SQL,
        commit::SQL,
        conversations::SQL,
        definitions::SQL,
        journal::SQL,
        leases::SQL,
        ledger::SQL,
        lookup::SQL,
        memories::KEPT_SQL,
        memories::SQL,
        open::SQL,
        operations::SQL,
        scan::SQL,
        sessions::SQL,
        talk::SQL,
        tokens::SQL,
        transcripts::SQL,
    ]
    .concat()
}
