//! The archive's contract on LanceDB, in directories and buckets, and what is particular to it:
//! restarts, several writers, conversations, upkeep, refusals.

mod bucket;
mod gate;
mod memories;
mod opening;
mod restart;
mod transcripts;
mod upkeep;
mod writers;

use std::sync::Arc;

use domain::ports::{Archive, ArchiveBatch, StepQuery};
use schemas::id::SessionKey;
use schemas::record::{JournalRow, StoredStep};
use tempfile::TempDir;
use testkit::contract::archive::{Author, suite};
use testkit::contract::build::key;

use crate::{LanceArchive, OpenOptions};

/// An archive that removes its directory in the end.
struct Temporary {
    _archive: LanceArchive,
    _directory: TempDir,
}

#[tokio::test]
async fn lancedb_keeps_the_contract() {
    // The directories live as long as the test.
    let guards = std::sync::Mutex::new(Vec::new());
    suite(&async || {
        let dir = TempDir::new().expect("a directory");
        let archive = open(&dir, OpenOptions::default()).await;
        guards.lock().expect("no panic").push(Temporary { _archive: archive.clone(), _directory: dir });
        Arc::new(archive) as Arc<dyn Archive>
    })
    .await;
}

async fn open(dir: &TempDir, options: OpenOptions) -> LanceArchive {
    let path = dir.path().join("history with blanks");
    LanceArchive::open(path.to_str().expect("a text"), options).await.expect("it opens")
}

async fn append(archive: &LanceArchive, rows: &[JournalRow]) {
    archive.append(&ArchiveBatch { rows: rows.to_vec() }).await.expect("the archive takes rows");
}

async fn steps_of(archive: &LanceArchive, key: &SessionKey) -> Vec<StoredStep> {
    let query = StepQuery { session: Some(key.clone()), limit: 10_000, ..StepQuery::default() };
    archive.steps(&query).await.expect("a read")
}

fn iterations(steps: &[StoredStep]) -> Vec<u64> {
    steps.iter().map(|stored| stored.step.iteration).collect()
}

/// `count` commits of one session, of one step each, with an event in between now and then.
fn journal(author: &mut Author, key: &SessionKey, count: u64) -> Vec<JournalRow> {
    (0..count).map(|n| author.commit(key, u64::from(n % 5 != 4))).collect()
}
