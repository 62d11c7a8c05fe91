//! One batch: rows of all shards above their watermarks, appended, then recorded as archived.

use std::collections::BTreeMap;
use std::time::Instant;

use domain::failure::Failure;
use domain::ports::{ArchiveBatch, JournalLag};
use domain::read::order::step_bytes;
use domain::verify::common_past;
use schemas::id::Shard;
use schemas::record::JournalRow;
use schemas::telemetry::metric;

use super::{ArchivistConfig, ArchivistDeps};

/// Per shard, up to where the archive surely has all rows.
pub struct Marks {
    seqs: BTreeMap<Shard, u64>,
    /// The shard that the next batch begins with, so that none starves.
    turn: u16,
}

impl Marks {
    /// After a start or a failure: asks archive and journal what is archived.
    pub async fn reconcile(deps: &ArchivistDeps) -> Result<Self, Failure> {
        let mut seqs = BTreeMap::new();
        for (lag, archived) in common_past(deps.archive.as_ref(), deps.journal.as_ref()).await? {
            if archived > lag.archived_seq {
                deps.journal.mark_archived(lag.shard, archived).await?;
            }
            seqs.insert(lag.shard, archived.max(lag.archived_seq));
        }
        Ok(Self { seqs, turn: 0 })
    }

    fn of(&self, lag: &JournalLag) -> u64 {
        self.seqs.get(&lag.shard).copied().unwrap_or(0).max(lag.archived_seq)
    }
}

pub struct Round {
    batch: ArchiveBatch,
    full: bool,
}

impl Round {
    /// Reads what waits, within the limits, beginning with another shard each time.
    pub async fn collect(deps: &ArchivistDeps, config: &ArchivistConfig, marks: &mut Marks) -> Result<Self, Failure> {
        let mut lags = deps.journal.lag().await?;
        let waiting: u64 = lags.iter().map(|lag| lag.seq.saturating_sub(marks.of(lag))).sum();
        lags.retain(|lag| lag.seq > marks.of(lag));
        let first = lags.iter().position(|lag| lag.shard.0 >= marks.turn).unwrap_or(0);
        lags.rotate_left(first);
        let (mut rows, mut bytes) = (Vec::new(), 0);
        for lag in &lags {
            let (rows_left, bytes_left) = (config.rows_max - rows.len(), config.bytes_max.saturating_sub(bytes));
            if rows_left == 0 || bytes_left == 0 {
                break;
            }
            let found = deps.journal.above(lag.shard, marks.of(lag), rows_left, bytes_left).await?;
            bytes += found.iter().map(row_bytes).sum::<usize>();
            rows.extend(found);
            marks.turn = lag.shard.0.wrapping_add(1);
        }
        rows.sort_by_key(|row| (row.shard, row.seq));
        let full = (rows.len() as u64) < waiting;
        Ok(Self { batch: ArchiveBatch { rows }, full })
    }

    /// When the oldest row of the batch was committed; `None` = nothing waits.
    pub fn oldest_ms(&self) -> Option<i64> {
        self.batch.rows.iter().map(|row| row.committed_at_ms).min()
    }

    /// Whether more waits than fits.
    pub fn is_full(&self) -> bool {
        self.full
    }

    pub async fn archive(self, deps: &ArchivistDeps, marks: &mut Marks) -> Result<(), Failure> {
        let started = Instant::now();
        deps.archive.append(&self.batch).await?;
        metrics::histogram!(metric::ARCHIVE_SECONDS).record(started.elapsed().as_secs_f64());
        metrics::counter!(metric::ARCHIVED_ROWS).increment(self.batch.rows.len() as u64);
        // Ascending, so the last of a shard is its highest.
        let highest: BTreeMap<Shard, u64> = self.batch.rows.iter().map(|row| (row.shard, row.seq)).collect();
        for (shard, seq) in highest {
            deps.journal.mark_archived(shard, seq).await?;
            marks.seqs.insert(shard, seq);
        }
        tracing::debug!(rows = self.batch.rows.len(), ms = started.elapsed().as_millis() as u64, "archived");
        Ok(())
    }
}

/// Roughly what a row takes in memory.
fn row_bytes(row: &JournalRow) -> usize {
    let entry = &row.entry;
    let events: usize = entry.events.iter().map(|event| event.data.as_str().len()).sum();
    512 + entry.state.as_str().len() + events + entry.steps.iter().map(|step| 256 + step_bytes(step)).sum::<usize>()
}
