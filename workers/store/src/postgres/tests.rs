//! The contract suites on PostgreSQL, and what is PostgreSQL's own.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use domain::ports::Clock;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use testkit::contract::{self, Ports, SHARDS};
use testkit::services::postgres_url;

use super::PostgresStore;
use crate::open::{OpenError, OpenOptions};

mod batches;
mod collisions;
mod memories;
mod openings;
mod outages;
mod room;
mod statements;
mod tls;
mod witness;

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

async fn execute(url: &str, sql: &str) {
    let mut connection = PgConnection::connect(url).await.expect("a connection");
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut connection).await.expect("a statement");
    connection.close().await.expect("closed");
}

/// The URL of a schema of its own, which is empty.
async fn fresh_url_on(server: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("t{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    execute(server, &format!("DROP SCHEMA IF EXISTS {name} CASCADE; CREATE SCHEMA {name}")).await;
    let separator = if server.contains('?') { '&' } else { '?' };
    format!("{server}{separator}options[search_path]={name}")
}

async fn fresh_url() -> String {
    fresh_url_on(postgres_url()).await
}

async fn try_open(url: &str) -> Result<PostgresStore, OpenError> {
    PostgresStore::open(url, options(SHARDS)).await
}

async fn open(url: &str) -> PostgresStore {
    try_open(url).await.expect("the store opens")
}

/// A fresh store, and its URL.
async fn fresh() -> (PostgresStore, String) {
    let url = fresh_url().await;
    (open(&url).await, url)
}

/// Closes its store's connections: a server has not so many that each test could keep its own.
struct Closing(PostgresStore);

impl Drop for Closing {
    fn drop(&mut self) {
        let store = self.0.clone();
        tokio::spawn(async move { store.close().await });
    }
}

async fn ports() -> Ports {
    let (store, _) = fresh().await;
    let guard: Arc<dyn Any + Send + Sync> = Arc::new(Closing(store.clone()));
    Ports { guard: Some(guard), ..Ports::of(store) }
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
