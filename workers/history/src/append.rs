//! Appending a batch of journal rows: one commit per table, its watermark inside.

use std::sync::Arc;

use arrow_array::RecordBatch;
use domain::failure::Failure;
use domain::ports::ArchiveBatch;
use lance::dataset::{WriteMode, WriteParams};
use lancedb::table::WriteOptions;
use schemas::record::JournalRow;

use crate::archive::{Handle, Tables, Written};
use crate::failure::of_lancedb;
use crate::marks::Marks;
use crate::table::Table;
use crate::table::events::LogRow;
use crate::table::steps::StepRow;

pub type Rows = Vec<Arc<JournalRow>>;

/// The port promises batches ascending and gapless per shard. A gap would become a hole in history
/// that the watermark then hides, so it is refused.
pub fn in_order(batch: &ArchiveBatch) -> Result<Rows, Failure> {
    for pair in batch.rows.windows(2) {
        let (a, b) = (&pair[0], &pair[1]);
        let follows = if a.shard == b.shard { b.seq == a.seq + 1 } else { a.shard < b.shard };
        if !follows {
            let places = format!("{}/{} is followed by {}/{}", a.shard, a.seq, b.shard, b.seq);
            return Err(Failure::internal(format!("the batch is out of order: {places}")));
        }
    }
    Ok(batch.rows.iter().cloned().map(Arc::new).collect())
}

impl Tables {
    pub async fn append(&self, rows: Rows) -> Result<(), Failure> {
        let mut writer = self.writer.lock().await;
        let writer = &mut *writer;
        self.append_steps(&mut writer.steps, &rows).await?;
        self.append_events(&mut writer.events, &rows).await?;
        self.merge_snapshots(&mut writer.state, &rows).await
    }

    pub async fn append_steps(&self, written: &mut Written, rows: &Rows) -> Result<(), Failure> {
        let sorted = |rows: &Rows| {
            let mut steps: Vec<StepRow> = rows.iter().flat_map(StepRow::all_of).collect();
            steps.sort_by(|a, b| a.order().cmp(&b.order()));
            steps
        };
        self.steps.append(written, rows, sorted).await
    }

    async fn append_events(&self, written: &mut Written, rows: &Rows) -> Result<(), Failure> {
        let sorted = |rows: &Rows| {
            let mut events: Vec<LogRow> = rows.iter().flat_map(LogRow::all_of).collect();
            events.sort_by(|a, b| a.order().cmp(&b.order()));
            events
        };
        self.events.append(written, rows, sorted).await
    }
}

impl<R: Send + Sync> Handle<R> {
    /// The table's watermark, from memory if nobody else has written since, else from storage. The
    /// next commit is taken only on top of the version that it is the watermark of.
    pub async fn marks(&self, written: &mut Written) -> Result<Marks, Failure> {
        let dataset = self.newest().await?;
        let version = dataset.version().version;
        match &written.marks {
            Some(marks) if self.commits.known() == version => Ok(marks.clone()),
            known => {
                let mut marks = Marks::stored(&dataset).await?;
                // Rows without anything for this table raise its mark in memory only.
                known.iter().for_each(|known| marks.merge(known));
                written.marks = Some(marks.clone());
                written.ends.clear();
                self.commits.follow(version);
                Ok(marks)
            }
        }
    }

    async fn append(
        &self,
        written: &mut Written,
        rows: &Rows,
        records: impl Fn(&Rows) -> Vec<R>,
    ) -> Result<(), Failure> {
        let marks = self.marks(written).await?;
        let fresh: Rows = rows.iter().filter(|row| !marks.covers(row)).cloned().collect();
        let reached = marks.with_rows(fresh.iter().map(Arc::as_ref));
        let records = records(&fresh);
        if !records.is_empty() {
            let batch = encode(self.declared, &records)?;
            let added = self.add(batch, &reached).await;
            self.settle(written, added, &reached).await?;
            written.upkeep.commits += 1;
            written.upkeep.rows += records.len();
        }
        // Merged: after a refused commit, another writer's marks are there, and may be higher.
        written.marks.get_or_insert_default().merge(&reached);
        Ok(())
    }

    pub async fn add(&self, batch: RecordBatch, marks: &Marks) -> Result<(), Failure> {
        let params = WriteParams {
            mode: WriteMode::Append,
            transaction_properties: Some(marks.properties()),
            skip_auto_cleanup: true,
            ..WriteParams::default()
        };
        let options = WriteOptions { lance_write_params: Some(params) };
        let what = format!("appending to {}", self.name());
        let added = self.table.add(batch).write_options(options).execute().await;
        added.map(|_| ()).map_err(|error| of_lancedb(&what, &error))
    }

    /// After a commit that reported a failure: it may be there all the same; its watermark tells.
    pub async fn settle(
        &self,
        written: &mut Written,
        done: Result<(), Failure>,
        reached: &Marks,
    ) -> Result<(), Failure> {
        let Err(failure) = done else { return Ok(()) };
        written.marks = None;
        if !self.marks(written).await?.reach(reached) {
            return Err(failure);
        }
        tracing::warn!(table = self.name(), error = %failure, "a commit reported a failure and is there");
        Ok(())
    }
}

pub fn encode<R>(table: &Table<R>, rows: &[R]) -> Result<RecordBatch, Failure> {
    table.encode(rows).map_err(|error| Failure::internal(format!("encoding rows of {}: {error}", table.name)))
}
