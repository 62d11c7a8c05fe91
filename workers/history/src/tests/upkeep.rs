//! Indexes, compaction and pruning change what is on disk, never what is read.

use std::time::Duration;

use super::*;

#[tokio::test]
async fn upkeep_bounds_files_and_keeps_rows_and_watermark() {
    let dir = TempDir::new().expect("a directory");
    let options = OpenOptions { keep_versions: Duration::ZERO, ..OpenOptions::default() };
    let archive = open(&dir, options.clone()).await;
    let (mut author, a1, b1) = (Author::new(0), key("a1"), key("b1"));
    let mut rows = Vec::new();
    for round in 0..70 {
        let batch = [author.commit(&a1, 2), author.commit(&b1, 1), author.commit(&a1, 0)];
        append(&archive, &batch).await;
        rows.extend(batch);
        if round % 4 == 3 {
            archive.maintain().await.expect("upkeep");
        }
    }
    archive.maintain().await.expect("upkeep");
    for (name, dataset) in [
        ("steps", archive.0.steps.dataset().await.expect("a table")),
        ("events", archive.0.events.dataset().await.expect("a table")),
        ("state", archive.0.state.dataset().await.expect("a table")),
    ] {
        let (fragments, versions) = (dataset.get_fragments().len(), dataset.versions().await.expect("a read").len());
        assert!(fragments < 64, "{name} has {fragments} fragments");
        assert!(versions < 20, "{name} has {versions} versions");
    }
    let indexes = archive.0.steps.table.list_indices().await.expect("a read");
    assert_eq!(indexes.len(), 2);
    drop(archive);
    // The commits that carried the watermark are pruned by now.
    let archive = open(&dir, options).await;
    assert_eq!(archive.watermarks().await.expect("a read"), [(schemas::id::Shard(0), 210)].into());
    append(&archive, &rows[200..]).await;
    assert_eq!(iterations(&steps_of(&archive, &a1).await), (0..140).collect::<Vec<_>>());
    assert_eq!(iterations(&steps_of(&archive, &b1).await), (0..70).collect::<Vec<_>>());
    assert_eq!(archive.events(&a1, 0, 1_000).await.expect("a read").len(), 70);
    assert_eq!(archive.snapshot(&a1).await.expect("a read").expect("one").head, rows[209].entry.head);
    assert_eq!(archive.snapshot(&b1).await.expect("a read").expect("one").head, rows[208].entry.head);
    let live = archive.0.state.dataset().await.expect("a table").count_rows(None).await.expect("a count");
    assert_eq!(live, 2, "one live row per session");
}

#[tokio::test]
async fn one_row_per_session_whatever_the_order_of_merges_and_upkeep() {
    let dir = TempDir::new().expect("a directory");
    let archive = open(&dir, OpenOptions::default()).await;
    let mut author = Author::new(0);
    let keys: Vec<SessionKey> = (0..40).map(|n| key(&format!("a{n}"))).collect();
    for round in 0..12 {
        let batch: Vec<JournalRow> =
            keys.iter().skip(round % 3).step_by(1 + round % 4).map(|key| author.commit(key, 1)).collect();
        append(&archive, &batch).await;
        archive.maintain().await.expect("upkeep");
    }
    let live = archive.0.state.dataset().await.expect("a table").count_rows(None).await.expect("a count");
    assert_eq!(live, keys.len());
}

#[tokio::test]
async fn a_page_of_too_many_bytes_is_refused_and_a_smaller_one_is_not() {
    let dir = TempDir::new().expect("a directory");
    let archive = open(&dir, OpenOptions::default()).await;
    let (mut author, a1) = (Author::new(0), key("a1"));
    let mut row = author.commit(&a1, 6);
    for step in &mut row.entry.steps {
        step.text = Some("x".repeat(schemas::limits::PAGE_BYTES_MAX / 4));
    }
    append(&archive, &[row]).await;
    let query = StepQuery { session: Some(a1), limit: 6, ..StepQuery::default() };
    let refused = archive.steps(&query).await.expect_err("too large");
    assert_eq!(refused.code, schemas::problem::Code::TooLarge);
    let found = archive.steps(&StepQuery { limit: 3, ..query }).await.expect("a read");
    assert_eq!(found.len(), 3);
}
