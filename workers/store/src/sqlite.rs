//! SQLite: one writer connection with group commit, a few read-only connections.

use std::sync::Arc;

use domain::failure::Failure;
use domain::ports::Clock;
use schemas::id::Shard;

mod accept;
mod audit;
mod check;
mod checkpoint;
mod commit;
mod conversations;
mod definitions;
mod failure;
mod header;
mod journal;
mod leases;
mod ledger;
mod library;
mod memories;
mod open;
mod operations;
mod pack;
mod readers;
mod reserve;
mod rows;
mod sessions;
mod talk;
mod tokens;
mod transcripts;
mod writer;

#[cfg(test)]
mod tests;

pub use library::SqliteConversations;
pub(crate) use open::MIGRATIONS;

use crate::batch::Queue;
#[cfg(test)]
use crate::open::{OpenError, OpenOptions};

/// The store of one SQLite file. Clones share connections and batches.
#[derive(Clone)]
pub struct SqliteStore(Arc<Inner>);

struct Inner {
    /// Fixed when the file was created.
    shards: u16,
    clock: Arc<dyn Clock>,
    writer: Arc<writer::Writer>,
    readers: readers::Readers,
    /// What searches know of memories.
    seen: memories::Seen,
    accepts: Queue<accept::Call>,
    commits: Queue<commit::Call>,
    checkpointer: checkpoint::Checkpointer,
}

impl SqliteStore {
    /// Closes all connections; the last one folds the write-ahead log into the file. Calls that
    /// come later fail as unavailable.
    pub async fn close(&self) {
        self.0.checkpointer.stop().await;
        self.0.readers.close().await;
        self.0.writer.close().await;
    }

    fn check_shard(&self, shard: Shard) -> Result<(), Failure> {
        if shard.0 < self.0.shards {
            return Ok(());
        }
        Err(Failure::internal(format!("there is no shard {shard}: the store has {} shards", self.0.shards)))
    }
}

/// All SQL of this module, for the tests that prepare and explain it.
#[cfg(test)]
fn statements() -> Vec<(&'static str, &'static str)> {
    [
        accept::SQL,
        audit::SQL,
        check::SQL,
        commit::SQL,
        conversations::LOOK_SQL,
        conversations::SQL,
        definitions::SQL,
        journal::SQL,
        leases::SQL,
        ledger::SQL,
        operations::SQL,
        memories::KEPT_SQL,
        memories::SQL,
        sessions::SQL,
        talk::SQL,
        tokens::SQL,
        transcripts::SQL,
        open::SQL,
    ]
    .concat()
}
