//! Two archivists at once: one was stopped, taken for dead and replaced, and wakes up in the middle
//! of what it did. Whatever it was, nothing is doubled, lost or turned back.

use std::fs;
use std::path::Path;

use schemas::id::Shard;

use super::gate::Gate;
use super::*;

fn options() -> OpenOptions {
    // Old versions stay for longer than the tests run: that is what a late commit fails on.
    OpenOptions::default()
}

/// What a fresh reader finds must be exactly `rows`, all of one session.
async fn assert_exact(uri: &str, options: &OpenOptions, rows: &[JournalRow], what: &str) {
    let archive = LanceArchive::open(uri, options.clone()).await.expect("it opens");
    let last = rows.last().expect("some rows");
    let steps = rows.iter().map(|row| row.entry.steps.len() as u64).sum::<u64>();
    let events = rows.iter().map(|row| row.entry.events.len()).sum::<usize>();
    assert_eq!(iterations(&steps_of(&archive, &last.key).await), (0..steps).collect::<Vec<_>>(), "{what}");
    assert_eq!(archive.events(&last.key, 0, 1_000).await.expect("a read").len(), events, "{what}");
    let snapshot = archive.snapshot(&last.key).await.expect("a read").expect("one");
    assert_eq!(snapshot.head, last.entry.head, "{what}");
    let live = archive.0.state.newest().await.expect("a table").count_rows(None).await.expect("a count");
    assert_eq!(live, 1, "{what}");
    let marks = archive.watermarks().await.expect("a read");
    assert_eq!(marks, [(Shard(0), last.seq)].into(), "{what}");
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a listing") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("a copy");
        }
    }
}

async fn take(archive: &LanceArchive, rows: &[JournalRow]) -> bool {
    archive.append(&ArchiveBatch { rows: rows.to_vec() }).await.is_ok()
}

#[tokio::test]
async fn an_append_that_wakes_up_late_adds_nothing_twice() {
    let (mut author, a1) = (Author::new(0), key("a1"));
    let rows = journal(&mut author, &a1, 20);
    for upkeep in [false, true] {
        let mut points = 0;
        loop {
            let dir = TempDir::new().expect("a directory");
            let uri = dir.path().join("history").display().to_string();
            let (gate, new) = (Gate::default(), LanceArchive::open(&uri, options()).await.expect("it opens"));
            let old = gate.open(&uri, &options()).await;
            append(&old, &rows[..5]).await;
            let (successor, theirs) = (new.clone(), rows[..15].to_vec());
            gate.arm(points, async move {
                append(&successor, &theirs).await;
                if upkeep {
                    successor.maintain().await.expect("upkeep");
                }
            })
            .await;
            take(&old, &rows[5..10]).await;
            if !gate.has_opened().await {
                break;
            }
            let what = format!("before commit {points} of the old one, upkeep {upkeep}");
            assert_exact(&uri, &options(), &rows[..15], &what).await;
            // It goes on as if nothing had been, and so does the new one.
            assert!(take(&old, &rows[5..18]).await && take(&new, &rows[10..]).await, "{what}");
            assert_exact(&uri, &options(), &rows, &what).await;
            points += 1;
        }
        assert_eq!(points, 3, "one commit to each table");
    }
}

#[tokio::test]
async fn upkeep_that_wakes_up_late_takes_no_watermark_back() {
    let (mut author, a1) = (Author::new(0), key("a1"));
    let rows = journal(&mut author, &a1, 100);
    // Enough small appends for indexes and a compaction to be due.
    let prepared = TempDir::new().expect("a directory");
    let uri = prepared.path().join("history").display().to_string();
    let archive = LanceArchive::open(&uri, options()).await.expect("it opens");
    for row in &rows[..84] {
        append(&archive, std::slice::from_ref(row)).await;
    }
    drop(archive);
    let mut points = 0;
    loop {
        let dir = TempDir::new().expect("a directory");
        copy(prepared.path(), dir.path());
        let uri = dir.path().join("history").display().to_string();
        let (gate, new) = (Gate::default(), LanceArchive::open(&uri, options()).await.expect("it opens"));
        let old = gate.open(&uri, &options()).await;
        append(&old, &rows[84..86]).await;
        let (successor, theirs) = (new.clone(), rows[86..92].to_vec());
        gate.arm(points, async move {
            append(&successor, &theirs).await;
            successor.maintain().await.expect("upkeep");
        })
        .await;
        let done = old.maintain().await;
        if !gate.has_opened().await {
            done.expect("undisturbed upkeep");
            break;
        }
        let what = format!("before commit {points} of the old one's upkeep");
        assert_exact(&uri, &options(), &rows[..92], &what).await;
        old.maintain().await.expect("upkeep, on top of what is there now");
        assert_exact(&uri, &options(), &rows[..92], &what).await;
        assert!(take(&old, &rows[92..95]).await && take(&new, &rows[92..]).await, "{what}");
        assert_exact(&uri, &options(), &rows, &what).await;
        points += 1;
    }
    assert!(points >= 8, "indexes, compactions and kept watermarks: only {points} commits");
}

#[tokio::test]
async fn two_writers_in_a_race_leave_every_row_once() {
    let dir = TempDir::new().expect("a directory");
    let uri = dir.path().join("history").display().to_string();
    race(&uri, &options(), 12).await;
}

/// Both append all rows, a few at a time and upkeep in between, until they are through.
pub async fn race(uri: &str, options: &OpenOptions, rounds: u64) {
    let (mut author, a1) = (Author::new(0), key("a1"));
    let rows = Arc::new(journal(&mut author, &a1, rounds * 5));
    let mut writers = tokio::task::JoinSet::new();
    for first in [3_usize, 5] {
        let archive = LanceArchive::open(uri, options.clone()).await.expect("it opens");
        let rows = rows.clone();
        writers.spawn(async move {
            let (mut upto, mut attempts) = (first, 0);
            loop {
                if take(&archive, &rows[..upto]).await {
                    if upto == rows.len() {
                        break;
                    }
                    upto = (upto + 5).min(rows.len());
                }
                let _ = archive.maintain().await;
                attempts += 1;
                assert!(attempts < 1_000, "no progress");
            }
        });
    }
    while let Some(done) = writers.join_next().await {
        done.expect("a writer");
    }
    assert_exact(uri, options, &rows, "after the race").await;
}
