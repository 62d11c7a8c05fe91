//! Merging rows by key: LanceDB's own merge cannot carry a watermark, so the merge is computed first
//! and committed by hand with one. Concurrent merges, and merges through an index, would duplicate
//! keys: a commit on top of another's is refused, and no index is used to find the rows.

use arrow_array::RecordBatch;
use domain::failure::Failure;
use lance::dataset::{CommitBuilder, MergeInsertBuilder, WhenMatched, WhenNotMatched};

use crate::archive::Handle;
use crate::failure::of_lance;
use crate::marks::Marks;

/// How rows of a table meet rows of the same key.
pub struct Merging {
    pub key: &'static [&'static str],
    /// Over `target` and `source`: when the new row takes the place of the one that is there.
    pub newer: &'static str,
}

impl<R> Handle<R> {
    pub async fn merge(&self, how: &Merging, batch: RecordBatch, marks: &Marks) -> Result<(), Failure> {
        let failed = |error: lance::Error| of_lance(&format!("merging into {}", self.name()), &error);
        let dataset = self.dataset().await?;
        let on = how.key.iter().map(|column| (*column).to_owned()).collect();
        let mut builder = MergeInsertBuilder::try_new(dataset.clone(), on).map_err(failed)?;
        builder
            .when_matched(WhenMatched::update_if(&dataset, how.newer).map_err(failed)?)
            .when_not_matched(WhenNotMatched::InsertAll)
            .use_index(false);
        let job = builder.try_build().map_err(failed)?;
        let merged = job.execute_uncommitted_batches(vec![batch]).await.map_err(failed)?;
        let mut transaction = merged.transaction;
        transaction.transaction_properties = Some(marks.properties());
        // A second attempt would be one on top of another's commit.
        let mut commit = CommitBuilder::new(dataset).with_skip_auto_cleanup(true).with_max_retries(0);
        if let Some(rows) = merged.affected_rows {
            commit = commit.with_affected_rows(rows);
        }
        let committed = commit.execute(transaction).await.map_err(failed)?;
        self.adopt(committed);
        Ok(())
    }
}
