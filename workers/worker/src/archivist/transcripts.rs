//! What is said in conversations on its way to the archive, beside the journal: a copy of each log, as far as
//! it is kept there. A crash between archive and database repeats a batch, which changes nothing.
//!
//! A record that cannot be archived holds up its own log alone: the rest of that waits, and is told.

use domain::conversation::kept::{KeptRecords, LogPlace, Stretch};
use domain::failure::Failure;
use domain::ports::TranscriptTail;
use schemas::conversation::LogRow;
use schemas::limits::{RECORDS_ARCHIVED_BYTES_MAX, RECORDS_ARCHIVED_MAX, RECORDS_PAGE, RECORDS_PAGE_BYTES_MAX};
use tokio::time::Instant;

use super::condition::Condition;
use super::pace::{INTERVAL, TOLD_EVERY, wait};
use super::{ArchivistConfig, ArchivistDeps};

/// Records that one batch tells of by name.
const FINDINGS_MAX: usize = 10;

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
        match Batch::copy(deps, self.end.clone()).await {
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

#[derive(Default)]
struct Batch {
    kept: KeptRecords,
    stretches: Vec<Stretch>,
    /// Records in the stretches, and records that were read.
    rows: usize,
    seen: usize,
    bytes: usize,
    /// Where the last of the logs that cannot be archived any further is stuck.
    stuck: Option<LogPlace>,
    /// How many those are, and why; the first few of them.
    left_out: usize,
    findings: Vec<String>,
    /// The last record that a full batch looked at.
    end: Option<LogPlace>,
}

impl Batch {
    /// Copies what waits behind a place, as far as it fits.
    async fn copy(deps: &ArchivistDeps, after: Option<LogPlace>) -> Result<Self, Failure> {
        let mut batch = Self::collect(deps.transcripts.as_ref(), after).await?;
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

    async fn collect(tail: &dyn TranscriptTail, mut after: Option<LogPlace>) -> Result<Self, Failure> {
        let mut batch = Self::default();
        loop {
            let page = tail.unarchived(after.as_ref(), RECORDS_PAGE, RECORDS_PAGE_BYTES_MAX).await?;
            let Some((last, _)) = page.last() else { return Ok(batch) };
            let mut last = last.clone();
            page.into_iter().for_each(|(place, row)| batch.take(place, row));
            if batch.is_stuck(&last) {
                // Behind all of that log.
                last.offset = u64::MAX;
            }
            after = Some(last);
            if batch.seen >= RECORDS_ARCHIVED_MAX || batch.bytes >= RECORDS_ARCHIVED_BYTES_MAX {
                batch.end = after;
                return Ok(batch);
            }
        }
    }

    fn is_stuck(&self, place: &LogPlace) -> bool {
        self.stuck.as_ref().is_some_and(|stuck| stuck.is_in_log_of(place))
    }

    fn take(&mut self, place: LogPlace, row: Result<LogRow, Failure>) {
        self.seen += 1;
        if self.is_stuck(&place) {
            return;
        }
        let added = row.and_then(|row| {
            self.bytes += 512 + row.record.body.as_str().len();
            self.kept.add(&place, &row)
        });
        if let Err(failure) = added {
            self.leave_out(place, &failure);
            return;
        }
        self.rows += 1;
        match self.stretches.last_mut().filter(|stretch| stretch.first.is_in_log_of(&place)) {
            Some(stretch) => stretch.upto = place.offset,
            None => self.stretches.push(Stretch { upto: place.offset, first: place }),
        }
    }

    fn leave_out(&mut self, place: LogPlace, failure: &Failure) {
        self.left_out += 1;
        if self.findings.len() < FINDINGS_MAX {
            let LogPlace { namespace, conversation_id, offset } = &place;
            self.findings.push(format!("record {offset} of {namespace}/{conversation_id}: {failure}"));
        }
        self.stuck = Some(place);
    }
}
