//! The contract suites on SQLite, and what is SQLite's own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use domain::ports::Clock;
use tempfile::TempDir;
use testkit::contract::{self, Ports, SHARDS};

use super::{OpenError, OpenOptions, SqliteStore};

mod batches;
mod full;
mod library;
mod memories;
mod openings;
mod statements;

struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "the clock of this machine")]
    fn now_ms(&self) -> i64 {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(0, |since| since.as_millis() as i64)
    }
}

fn options(shards: u16) -> OpenOptions {
    OpenOptions { shards: Some(shards), create: true, clock: Arc::new(SystemClock) }
}

async fn try_open(path: &Path) -> Result<SqliteStore, OpenError> {
    SqliteStore::open(path, options(SHARDS)).await
}

async fn open(path: &Path) -> SqliteStore {
    try_open(path).await.expect("the store opens")
}

/// A fresh store in a directory that lives as long as the guard.
async fn fresh() -> (SqliteStore, PathBuf, TempDir) {
    let directory = TempDir::new().expect("a temporary directory");
    let path = directory.path().join("store.db");
    (open(&path).await, path, directory)
}

/// This machine's clock, and what a test let pass.
#[derive(Clone, Default)]
struct Skipping(Arc<AtomicI64>);

impl Clock for Skipping {
    fn now_ms(&self) -> i64 {
        SystemClock.now_ms() + self.0.load(Ordering::Relaxed)
    }
}

async fn ports() -> Ports {
    let directory = TempDir::new().expect("a temporary directory");
    let clock = Skipping::default();
    let options = OpenOptions { clock: Arc::new(clock.clone()), ..options(SHARDS) };
    let store = SqliteStore::open(&directory.path().join("store.db"), options).await.expect("the store opens");
    let skip = move |ms: u64| {
        clock.0.fetch_add(i64::try_from(ms).expect("a short time"), Ordering::Relaxed);
    };
    Ports { skip: Some(Arc::new(skip)), guard: Some(Arc::new(directory)), ..Ports::of(store) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ledger_contract() {
    contract::ledger::suite(&ports).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_contract() {
    contract::sessions::suite(&ports).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_contract() {
    contract::commits::suite(&ports).await;
}

#[tokio::test]
async fn journal_contract() {
    contract::journal::suite(&ports).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_contract() {
    contract::leases::suite(&ports).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn definitions_contract() {
    contract::definitions::suite(&ports).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conversations_contract() {
    contract::conversations::suite(&ports).await;
    contract::look::suite(&ports).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operations_contract() {
    contract::operations::suite(&ports).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn talk_contract() {
    contract::talk::suite(&ports).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transcripts_contract() {
    contract::transcripts::suite(&ports).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memories_contract() {
    contract::memories::suite(&ports).await;
}

#[tokio::test]
async fn tokens_contract() {
    contract::tokens::suite(&ports).await;
}
