//! Removes what is archived and past its grace: journal rows, and processed actions of the ledger.

use std::collections::VecDeque;
use std::time::Duration;

use domain::failure::Failure;
use tokio::time::Instant;

use super::{ArchivistConfig, ArchivistDeps};

/// Rows per statement, and statements per turn: a trim never holds the database for long.
const ROWS_AT_A_TIME: usize = 2_000;
const TIMES_MAX: usize = 50;
/// A turn in so many also looks at the ledger.
const LEDGER_EVERY: u32 = 15;

pub struct Trimmer {
    grace_ms: u64,
    reader_lag: Duration,
    ledger_retention_ms: u64,
    /// Batches that a reader of the archive may not see yet: until when, and their oldest row.
    held: VecDeque<(Instant, i64)>,
    turns: u32,
}

impl Trimmer {
    pub fn new(config: &ArchivistConfig) -> Self {
        Self {
            grace_ms: config.grace_ms,
            reader_lag: Duration::from_millis(config.reader_lag_ms),
            ledger_retention_ms: config.ledger_retention_ms,
            // What an archivist before this one appended last, nobody knows.
            held: VecDeque::from([(Instant::now() + Duration::from_millis(config.reader_lag_ms), i64::MIN)]),
            turns: 0,
        }
    }

    /// Rows from `oldest_ms` on stay until every reader sees them in the archive: after a long
    /// outage they are past their grace the moment they are archived.
    pub fn hold(&mut self, oldest_ms: i64) {
        self.held.push_back((Instant::now() + self.reader_lag, oldest_ms));
    }

    pub async fn trim(&mut self, deps: &ArchivistDeps) -> Result<(), Failure> {
        let now = Instant::now();
        while self.held.front().is_some_and(|(until, _)| *until <= now) {
            self.held.pop_front();
        }
        let held = self.held.iter().map(|(_, oldest_ms)| *oldest_ms).min().unwrap_or(i64::MAX);
        for _ in 0..TIMES_MAX {
            if deps.journal.trim(self.grace_ms, held, ROWS_AT_A_TIME).await? < ROWS_AT_A_TIME as u64 {
                break;
            }
        }
        self.turns = self.turns.wrapping_add(1);
        if self.turns % LEDGER_EVERY == 1 {
            self.forget(deps).await?;
        }
        Ok(())
    }

    async fn forget(&self, deps: &ArchivistDeps) -> Result<(), Failure> {
        for _ in 0..TIMES_MAX {
            if deps.ledger.forget_processed(self.ledger_retention_ms, ROWS_AT_A_TIME).await? < ROWS_AT_A_TIME as u64 {
                break;
            }
        }
        Ok(())
    }
}
