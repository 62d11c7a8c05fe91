//! Upkeep of the tables: indexes, compaction, old versions. Done by the writer between its appends,
//! so it never meets another commit; each part runs only when due.

use std::time::{Duration, Instant};

use domain::failure::Failure;
use lance::dataset::cleanup::CleanupPolicy;
use lancedb::index::Index;
use lancedb::index::scalar::{BTreeIndexBuilder, FtsIndexBuilder};
use lancedb::table::{CompactionOptions, OptimizeAction, OptimizeOptions};

use crate::archive::{Handle, Tables, Written};
use crate::failure::{of_lance, of_lancedb};
use crate::marks::KEY;

/// Commits, and rows, between two index updates: what is not indexed is scanned by every read.
const INDEX_EVERY: u32 = 8;
const INDEX_EVERY_ROWS: usize = 4_096;
/// Index updates between two merges of an index's parts into one.
const MERGE_INDEX_EVERY: u32 = 32;
/// Fragments of one size class that are compacted together.
const FRAGMENTS_MAX: usize = 64;
/// Upper ends of the size classes, in rows. A fragment is compacted with its like: a row is then
/// rewritten once per class, not once per compaction.
const CLASSES: [usize; 3] = [4_096, 65_536, 1 << 20];
/// Rows that a compaction reads at a time, a few times over. LanceDB's own number is 8,192, on buckets 16,384, however
/// large they are: of contexts of models that would be gigabytes.
const COMPACTED_AT_A_TIME: usize = 1_024;
const PRUNE_EVERY: Duration = Duration::from_secs(600);

/// What was done since when.
#[derive(Default)]
pub struct Upkeep {
    /// Commits since the last look at fragments and indexes.
    pub commits: u32,
    pub rows: usize,
    unindexed: u32,
    unindexed_rows: usize,
    index_updates: u32,
    has_indexes: bool,
    pruned: Option<Instant>,
}

impl Tables {
    pub async fn maintain(&self) -> Result<(), Failure> {
        let mut writer = self.writer.lock().await;
        let writer = &mut *writer;
        self.steps.maintain(&mut writer.steps, self.keep_versions).await?;
        self.events.maintain(&mut writer.events, self.keep_versions).await?;
        self.state.maintain(&mut writer.state, self.keep_versions).await?;
        self.memories.maintain(&mut writer.memories, self.keep_versions).await?;
        self.messages.maintain(&mut writer.messages, self.keep_versions).await?;
        self.moves.maintain(&mut writer.moves, self.keep_versions).await?;
        self.records.maintain(&mut writer.records, self.keep_versions).await
    }
}

impl<R: Send + Sync> Handle<R> {
    async fn maintain(&self, written: &mut Written, keep: Duration) -> Result<(), Failure> {
        if written.upkeep.commits > 0 {
            // Upkeep, too, is refused on top of what this process does not know.
            self.marks(written).await?;
            self.index(written).await?;
            self.compact(written).await?;
            (written.upkeep.commits, written.upkeep.rows) = (0, 0);
        }
        self.prune(written, keep).await?;
        Ok(())
    }

    async fn index(&self, written: &mut Written) -> Result<(), Failure> {
        let upkeep = &mut written.upkeep;
        upkeep.unindexed += upkeep.commits;
        upkeep.unindexed_rows += upkeep.rows;
        if !upkeep.has_indexes {
            self.create_indexes().await?;
            // What is not indexed from before this process is due now.
            (upkeep.has_indexes, upkeep.unindexed) = (true, INDEX_EVERY);
        }
        if upkeep.unindexed < INDEX_EVERY && upkeep.unindexed_rows < INDEX_EVERY_ROWS {
            return Ok(());
        }
        upkeep.index_updates += 1;
        let options = if upkeep.index_updates.is_multiple_of(MERGE_INDEX_EVERY) {
            OptimizeOptions::merge(MERGE_INDEX_EVERY as usize)
        } else {
            OptimizeOptions::append()
        };
        self.optimize(OptimizeAction::Index(options)).await?;
        (upkeep.unindexed, upkeep.unindexed_rows) = (0, 0);
        Ok(())
    }

    /// Called once the table has rows: an index is trained on some.
    async fn create_indexes(&self) -> Result<(), Failure> {
        let failed = |error: lancedb::Error| of_lancedb(&format!("indexing {}", self.name()), &error);
        let existing = self.table.list_indices().await.map_err(failed)?;
        for column in self.declared.indexed {
            if existing.iter().any(|index| index.columns == [*column]) {
                continue;
            }
            let index = Index::BTree(BTreeIndexBuilder::default());
            self.table.create_index(&[column], index).execute().await.map_err(failed)?;
        }
        for column in self.declared.searched {
            if existing.iter().any(|index| index.columns == [*column]) {
                continue;
            }
            self.table.create_index(&[column], words_index()).execute().await.map_err(failed)?;
        }
        Ok(())
    }

    async fn compact(&self, written: &mut Written) -> Result<(), Failure> {
        let dataset = self.dataset().await?;
        let sizes: Vec<usize> =
            dataset.get_fragments().iter().map(|fragment| fragment.metadata().num_rows().unwrap_or(0)).collect();
        let Some(target) = due_class(&sizes) else { return Ok(()) };
        let marks = self.marks(written).await?;
        let options = CompactionOptions {
            target_rows_per_fragment: target,
            batch_size: Some(COMPACTED_AT_A_TIME),
            num_threads: Some(1),
            max_source_fragments: Some(8 * FRAGMENTS_MAX),
            transaction_properties: Some(marks.properties()),
            ..CompactionOptions::default()
        };
        let started = Instant::now();
        self.optimize(OptimizeAction::Compact { options, remap_options: None }).await?;
        let ms = started.elapsed().as_millis() as u64;
        tracing::debug!(table = self.name(), fragments = sizes.len(), target, ms, "compacted");
        Ok(())
    }

    async fn prune(&self, written: &mut Written, keep: Duration) -> Result<(), Failure> {
        if written.upkeep.pruned.is_some_and(|at| at.elapsed() < PRUNE_EVERY.min(keep)) {
            return Ok(());
        }
        // The version that has the watermark may be among those that go.
        self.keep_marks(written).await?;
        let failed = |error: lance::Error| of_lance(&format!("pruning {}", self.name()), &error);
        let dataset = self.dataset().await?;
        let keep = lancedb::table::Duration::from_std(keep).unwrap_or(lancedb::table::Duration::MAX);
        let Some(before) = dataset.version().timestamp.checked_sub_signed(keep) else { return Ok(()) };
        let policy = CleanupPolicy {
            before_timestamp: Some(before),
            // Should this process stop here for long, later versions are none of its business: their
            // watermarks may not be kept yet.
            before_version: Some(self.commits.known()),
            error_if_tagged_old_versions: false,
            ..CleanupPolicy::default()
        };
        dataset.cleanup_with_policy(policy).await.map_err(failed)?;
        written.upkeep.pruned = Some(Instant::now());
        Ok(())
    }

    /// Copies the watermark to where every later version keeps it.
    async fn keep_marks(&self, written: &mut Written) -> Result<(), Failure> {
        let marks = self.marks(written).await?;
        let text = marks.text();
        let kept = self.dataset().await?.manifest().config.get(KEY).is_some_and(|kept| *kept == text);
        if let (false, Some(native)) = (kept, self.table.as_native()) {
            let failed =
                |error: lancedb::Error| of_lancedb(&format!("noting the watermark of {}", self.name()), &error);
            native.update_config([(KEY.to_owned(), text)]).await.map_err(failed)?;
        }
        Ok(())
    }

    async fn optimize(&self, action: OptimizeAction) -> Result<(), Failure> {
        let done = self.table.optimize(action).await;
        done.map(|_| ()).map_err(|error| of_lancedb(&format!("maintaining {}", self.name()), &error))
    }
}

/// Words are split before they are stored, and compared as they are.
fn words_index() -> Index {
    let words = FtsIndexBuilder::default().base_tokenizer("whitespace".to_owned());
    let words = words.lower_case(false).stem(false).remove_stop_words(false).ascii_folding(false);
    Index::FTS(words.max_token_length(None))
}

/// The largest size class with too many fragments.
fn due_class(sizes: &[usize]) -> Option<usize> {
    let in_class = |index: usize| {
        let from = if index == 0 { 0 } else { CLASSES[index - 1] };
        sizes.iter().filter(|rows| (from..CLASSES[index]).contains(*rows)).count()
    };
    (0..CLASSES.len()).rev().find(|index| in_class(*index) >= FRAGMENTS_MAX).map(|index| CLASSES[index])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_are_compacted_with_their_like() {
        assert_eq!(due_class(&[]), None);
        assert_eq!(due_class(&[1 << 20; 500]), None, "full ones stay");
        assert_eq!(due_class(&[10; 63]), None);
        assert_eq!(due_class(&[10; 64]), Some(CLASSES[0]));
        let mut mixed = vec![10_000; 64];
        mixed.extend([10; 64]);
        assert_eq!(due_class(&mixed), Some(CLASSES[1]), "the larger class takes the smaller along");
    }

    #[test]
    fn a_row_is_rewritten_a_few_times_only() {
        let (mut sizes, mut rewritten, commits, rows) = (Vec::new(), 0_u64, 20_000, 100);
        for _ in 0..commits {
            sizes.push(rows);
            if let Some(target) = due_class(&sizes) {
                let moved: usize = sizes.iter().filter(|size| **size < target).sum();
                rewritten += moved as u64;
                sizes.retain(|size| *size >= target);
                sizes.extend(std::iter::repeat_n(target, moved / target));
                sizes.extend((!moved.is_multiple_of(target)).then_some(moved % target));
            }
            assert!(sizes.len() < 4 * FRAGMENTS_MAX);
        }
        let times = rewritten as f64 / f64::from(commits * rows as u32);
        assert!(times < 4.0, "each row was rewritten {times:.1} times");
    }
}
