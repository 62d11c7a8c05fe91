//! Memories on their way to the archive, beside the journal: what changed goes there, and what is heavy
//! of it leaves SQL once every reader sees it in the archive (`domain::recall::move_memories`).

use std::time::Duration;

use domain::failure::Failure;
use domain::recall;
use schemas::limits::{MEMORIES_NEAR_MAX, MEMORY_MOVE_INTERVAL_MS};
use tokio::time::Instant;

use super::condition::Condition;
use super::{ArchivistConfig, ArchivistDeps};

/// Rows per transaction, and transactions per turn: writers wait for none of them for long.
const ROWS_AT_A_TIME: usize = 1_000;
const TIMES_MAX: usize = 20;

pub struct Mover {
    moving: Condition,
    grace_ms: u64,
    every: Duration,
    /// When the next batch is due.
    due: Instant,
    lightened: Instant,
}

impl Mover {
    pub fn new(config: &ArchivistConfig) -> Self {
        Self {
            moving: Condition::new("archiving memories", config),
            // Counted from when the archive had them: longer than any reader of it is behind.
            grace_ms: config.grace_ms.max(config.reader_lag_ms),
            every: Duration::from_millis(config.trim_ms),
            due: Instant::now(),
            lightened: Instant::now(),
        }
    }

    /// One batch. Answers whether more waits than fits into it.
    pub async fn turn(&mut self, deps: &ArchivistDeps) -> bool {
        if self.moving.is_waiting() || Instant::now() < self.due {
            return false;
        }
        self.due = Instant::now() + Duration::from_millis(MEMORY_MOVE_INTERVAL_MS);
        match self.try_turn(deps).await {
            Ok(full) => {
                self.moving.works();
                if full {
                    self.due = Instant::now();
                }
                full
            }
            Err(failure) => {
                self.moving.fails(&failure);
                false
            }
        }
    }

    async fn try_turn(&mut self, deps: &ArchivistDeps) -> Result<bool, Failure> {
        let moved = recall::move_memories(deps.tail.as_ref(), deps.memories.as_ref()).await?;
        if moved.rows > 0 {
            tracing::debug!(rows = moved.rows, "memories archived");
        }
        if self.lightened.elapsed() >= self.every {
            self.lightened = Instant::now();
            for _ in 0..TIMES_MAX {
                if deps.tail.lighten(self.grace_ms, MEMORIES_NEAR_MAX, ROWS_AT_A_TIME).await? < ROWS_AT_A_TIME as u64 {
                    break;
                }
            }
        }
        Ok(moved.full)
    }
}
