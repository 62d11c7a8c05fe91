//! Nothing is lost and nothing doubled by a restart at any point.

use super::*;

#[tokio::test]
async fn the_watermark_survives_a_restart() {
    let dir = TempDir::new().expect("a directory");
    let (mut author, a1) = (Author::new(7), key("a1"));
    let rows = journal(&mut author, &a1, 12);
    let archive = open(&dir, OpenOptions::default()).await;
    append(&archive, &rows[..8]).await;
    drop(archive);
    let archive = open(&dir, OpenOptions::default()).await;
    assert_eq!(archive.watermarks().await.expect("a read"), [(schemas::id::Shard(7), 8)].into());
    append(&archive, &rows).await;
    assert_eq!(steps_of(&archive, &a1).await.len(), 10);
    assert_eq!(archive.events(&a1, 0, 100).await.expect("a read").len(), 2);
}

#[tokio::test]
async fn a_crash_between_the_tables_is_repaired_by_the_repeat() {
    let dir = TempDir::new().expect("a directory");
    let (mut author, a1) = (Author::new(0), key("a1"));
    let rows = journal(&mut author, &a1, 10);
    let archive = open(&dir, OpenOptions::default()).await;
    append(&archive, &rows[..5]).await;
    {
        // The next batch gets as far as the first table.
        let mut writer = archive.0.writer.lock().await;
        let shared = rows[5..].iter().cloned().map(Arc::new).collect();
        archive.0.append_steps(&mut writer.steps, &shared).await.expect("the first table");
    }
    drop(archive);
    let archive = open(&dir, OpenOptions::default()).await;
    assert_eq!(archive.watermarks().await.expect("a read"), [(schemas::id::Shard(0), 5)].into(), "the last table's");
    append(&archive, &rows[5..]).await;
    assert_eq!(iterations(&steps_of(&archive, &a1).await), (0..8).collect::<Vec<_>>());
    assert_eq!(archive.events(&a1, 0, 100).await.expect("a read").len(), 2);
    assert_eq!(archive.snapshot(&a1).await.expect("a read").expect("one").head, rows[9].entry.head);
}

#[tokio::test]
async fn a_writer_that_is_dropped_half_way_leaves_no_double() {
    let dir = TempDir::new().expect("a directory");
    let (mut author, a1) = (Author::new(0), key("a1"));
    let archive = open(&dir, OpenOptions::default()).await;
    let mut rows = Vec::new();
    for _ in 0..10 {
        rows.extend(journal(&mut author, &a1, 5));
        let batch = ArchiveBatch { rows: rows.clone() };
        {
            let mut append = std::pin::pin!(archive.append(&batch));
            // Polled once: it has begun, and is dropped at its first wait.
            assert!(futures::poll!(append.as_mut()).is_pending());
        }
        append(&archive, &rows).await;
    }
    assert_eq!(iterations(&steps_of(&archive, &a1).await), (0..40).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_second_writer_sees_what_the_first_wrote() {
    let dir = TempDir::new().expect("a directory");
    let (mut author, a1) = (Author::new(0), key("a1"));
    let rows = journal(&mut author, &a1, 10);
    let (first, second) = (open(&dir, OpenOptions::default()).await, open(&dir, OpenOptions::default()).await);
    append(&first, &rows[..5]).await;
    append(&second, &rows[..5]).await;
    append(&first, &rows).await;
    append(&second, &rows).await;
    for archive in [first, second] {
        assert_eq!(iterations(&steps_of(&archive, &a1).await), (0..8).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn another_reader_sees_new_rows_within_its_interval() {
    let dir = TempDir::new().expect("a directory");
    let (mut author, a1) = (Author::new(0), key("a1"));
    let options = OpenOptions { read_consistency: std::time::Duration::ZERO, ..OpenOptions::default() };
    let (writer, reader) = (open(&dir, OpenOptions::default()).await, open(&dir, options).await);
    for count in 1..4 {
        append(&writer, &[author.commit(&a1, 1)]).await;
        assert_eq!(steps_of(&reader, &a1).await.len(), count);
        assert_eq!(steps_of(&writer, &a1).await.len(), count, "a writer reads its own rows at once");
    }
}
