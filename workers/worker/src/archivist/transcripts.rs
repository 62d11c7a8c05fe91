//! What is said in conversations on its way to the archive, beside the journal: a copy of each log, as far as
//! it is kept there. A crash between archive and database repeats a batch, which changes nothing.

use domain::conversation::kept::LogPlace;
use domain::failure::Failure;
use tokio::time::Instant;

use super::batch::{Batch, What};
use super::condition::Condition;
use super::pace::{INTERVAL, TOLD_EVERY, wait};
use super::{ArchivistConfig, ArchivistDeps};

pub struct Copier {
    copying: Condition,
    /// The last record of a full batch; the next one goes on behind it.
    end: Option<LogPlace>,
    /// When the next batch is due.
    due: Instant,
    /// When records that cannot be archived were told last.
    told: Option<Instant>,
}

impl Copier {
    pub fn new(config: &ArchivistConfig) -> Self {
        Self { copying: Condition::new("archiving conversations", config), end: None, due: Instant::now(), told: None }
    }

    /// One batch. Answers whether another one is due at once.
    pub async fn turn(&mut self, deps: &ArchivistDeps) -> bool {
        let began = Instant::now();
        if self.copying.is_waiting() || began < self.due {
            return false;
        }
        self.due = began + INTERVAL;
        match copy(deps, self.end.clone()).await {
            Ok(batch) => {
                self.copying.works();
                self.tell(&batch);
                let wait = wait(batch.rows, batch.end.is_some(), batch.left_out, began.elapsed());
                self.end = batch.end;
                self.due = began + wait;
                wait.is_zero()
            }
            Err(failure) => {
                self.copying.fails(&failure);
                false
            }
        }
    }

    /// Tells which records cannot be archived: somebody has to look.
    fn tell(&mut self, batch: &Batch) {
        if batch.left_out == 0 || self.told.is_some_and(|told| told.elapsed() < TOLD_EVERY) {
            return;
        }
        self.told = Some(Instant::now());
        let which = batch.findings.join("; ");
        tracing::error!(logs = batch.left_out, %which, "conversations cannot be archived any further");
    }
}

/// Copies what waits behind a place, as far as it fits.
async fn copy(deps: &ArchivistDeps, after: Option<LogPlace>) -> Result<Batch, Failure> {
    let mut batch = Batch::collect(deps.transcripts.as_ref(), What::Unarchived, after).await?;
    let kept = std::mem::take(&mut batch.kept);
    if !kept.is_empty() {
        deps.records.add_records(kept).await?;
    }
    if !batch.stretches.is_empty() {
        deps.transcripts.record_archived(&batch.stretches).await?;
        tracing::debug!(rows = batch.rows, logs = batch.stretches.len(), "conversations archived");
    }
    Ok(batch)
}
