//! What models and tools made of turns leaves SQL after a while: its bodies, which are most of a log. The archive has
//! them by then; that is made sure of first, because an earlier release may not have archived them. A crash at any
//! point repeats a batch, which changes nothing.

use std::collections::VecDeque;
use std::time::Duration;

use domain::conversation::kept::{LogPlace, Stretch};
use domain::failure::Failure;
use schemas::limits::RECORDS_LIGHTEN_INTERVAL_MS;
use tokio::time::Instant;

use super::batch::{Batch, What};
use super::condition::Condition;
use super::{ArchivistConfig, ArchivistDeps};

/// Batches that are held at a time.
const HELD_MAX: usize = 64;

pub struct Lightener {
    lightening: Condition,
    older_than_ms: u64,
    reader_lag: Duration,
    /// Records that the archive has for certain, and from when on every reader sees them there.
    held: VecDeque<(Instant, Vec<Stretch>)>,
    /// The last record of a full batch; the walk goes on behind it.
    end: Option<LogPlace>,
    /// When the next batch is due.
    due: Instant,
}

impl Lightener {
    pub fn new(config: &ArchivistConfig) -> Self {
        Self {
            lightening: Condition::new("trimming conversations", config),
            older_than_ms: config.records_whole_ms,
            reader_lag: Duration::from_millis(config.reader_lag_ms),
            held: VecDeque::new(),
            end: None,
            due: Instant::now() + Duration::from_millis(config.lighten_after_ms),
        }
    }

    /// One batch. Answers whether another one is due at once.
    pub async fn turn(&mut self, deps: &ArchivistDeps) -> bool {
        if self.lightening.is_waiting() {
            return false;
        }
        match self.try_turn(deps).await {
            Ok(more) => {
                self.lightening.works();
                more
            }
            Err(failure) => {
                self.lightening.fails(&failure);
                false
            }
        }
    }

    async fn try_turn(&mut self, deps: &ArchivistDeps) -> Result<bool, Failure> {
        let now = Instant::now();
        while let Some((_, stretches)) = self.held.front().filter(|(from, _)| *from <= now) {
            deps.transcripts.lighten_records(stretches).await?;
            self.held.pop_front();
        }
        // A new walk would find again what is held.
        let is_free = if self.end.is_some() { self.held.len() < HELD_MAX } else { self.held.is_empty() };
        if now < self.due || !is_free {
            return Ok(false);
        }
        self.due = now + Duration::from_millis(RECORDS_LIGHTEN_INTERVAL_MS);
        let what = What::Heavy { older_than_ms: self.older_than_ms };
        let batch = Batch::collect(deps.transcripts.as_ref(), what, self.end.take()).await?;
        if batch.left_out > 0 {
            let which = batch.findings.join("; ");
            tracing::error!(logs = batch.left_out, %which, "conversations stay in the database from here on");
        }
        if !batch.kept.is_empty() {
            deps.records.add_records(batch.kept).await?;
        }
        if !batch.stretches.is_empty() {
            tracing::debug!(rows = batch.rows, logs = batch.stretches.len(), "conversations trimmed");
            self.held.push_back((Instant::now() + self.reader_lag, batch.stretches));
        }
        self.end = batch.end;
        if self.end.is_some() {
            self.due = now;
        }
        Ok(self.end.is_some())
    }
}
