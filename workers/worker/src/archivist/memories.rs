//! Memories on their way to the archive, beside the journal: what changed goes there, and what is heavy
//! of it leaves SQL once every reader sees it in the archive (`domain::recall::Moved`).

use std::time::Duration;

use domain::failure::Failure;
use domain::recall::Moved;
use schemas::limits::MEMORIES_NEAR_MAX;
use tokio::time::Instant;

use super::condition::Condition;
use super::pace::{INTERVAL, TOLD_EVERY, wait};
use super::{ArchivistConfig, ArchivistDeps};

/// Rows per transaction, and transactions per turn: writers wait for none of them for long.
const ROWS_AT_A_TIME: usize = 1_000;
const TIMES_MAX: usize = 20;

pub struct Mover {
    moving: Condition,
    grace_ms: u64,
    every: Duration,
    /// The last batch; the next one goes on from there.
    last: Moved,
    /// When the next batch is due.
    due: Instant,
    lightened: Instant,
    /// When rows that cannot be moved were told last.
    told: Option<Instant>,
}

impl Mover {
    pub fn new(config: &ArchivistConfig) -> Self {
        Self {
            moving: Condition::new("archiving memories", config),
            // Counted from when the archive had them: longer than any reader of it is behind.
            grace_ms: config.grace_ms.max(config.reader_lag_ms),
            every: Duration::from_millis(config.trim_ms),
            last: Moved::default(),
            due: Instant::now(),
            lightened: Instant::now(),
            told: None,
        }
    }

    /// One batch. Answers whether another one is due at once.
    pub async fn turn(&mut self, deps: &ArchivistDeps) -> bool {
        let began = Instant::now();
        if self.moving.is_waiting() || began < self.due {
            return false;
        }
        self.due = began + INTERVAL;
        match self.try_turn(deps).await {
            Ok(()) => {
                self.moving.works();
                let Moved { rows, full, left_out, .. } = self.last;
                let wait = wait(rows, full, left_out, began.elapsed());
                self.due = began + wait;
                wait.is_zero()
            }
            Err(failure) => {
                self.moving.fails(&failure);
                false
            }
        }
    }

    async fn try_turn(&mut self, deps: &ArchivistDeps) -> Result<(), Failure> {
        self.last = self.last.go_on(deps.tail.as_ref(), deps.memories.as_ref()).await?;
        if self.last.rows > 0 {
            tracing::debug!(rows = self.last.rows, "memories archived");
        }
        self.tell();
        if self.lightened.elapsed() >= self.every {
            self.lightened = Instant::now();
            for _ in 0..TIMES_MAX {
                if deps.tail.lighten(self.grace_ms, MEMORIES_NEAR_MAX, ROWS_AT_A_TIME).await? < ROWS_AT_A_TIME as u64 {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Tells which rows cannot be moved: somebody has to look.
    fn tell(&mut self) {
        if self.last.left_out == 0 || self.told.is_some_and(|told| told.elapsed() < TOLD_EVERY) {
            return;
        }
        self.told = Some(Instant::now());
        let which = self.last.findings.join("; ");
        tracing::error!(rows = self.last.left_out, %which, "memories cannot be archived; they stay in the database");
    }
}
