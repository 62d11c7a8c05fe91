//! A disk without space: callers are told, nothing is lost, and work goes on when there is space.

use domain::ports::Leases;
use schemas::problem::Code;
use sqlx::AssertSqlSafe;
use testkit::contract::Ports;
use testkit::contract::build::{input, key, next_commit, worker};

use super::super::SqliteStore;
use super::fresh;

/// Lets the file grow to so many pages: SQLite's own way to run out of space.
async fn limit_pages(store: &SqliteStore, pages: i64) {
    let mut tx = store.0.writer.begin().await.expect("the writer");
    let pragma = format!("PRAGMA max_page_count = {pages}");
    sqlx::query(AssertSqlSafe(pragma)).execute(tx.connection()).await.expect("the pragma");
    tx.finish(Ok(())).await.expect("finished");
}

#[tokio::test]
async fn a_full_disk_loses_nothing() {
    let (store, path, _directory) = fresh().await;
    let ports = Ports::of(store.clone());
    let owner = worker("w1");
    let row = ports.created("s1", "agent").await;
    let epoch = ports.own(row.shard, &owner).await;
    limit_pages(&store, 1).await;
    let mut steps = 0;
    let failure = loop {
        let now = ports.row(&row.key).await;
        match ports.commits.commit(&owner, vec![next_commit(&now, epoch, 20)]).await {
            Ok(_) => steps += 20,
            Err(failure) => break failure,
        }
        assert!(steps < 100_000, "the limit should stop this");
    };
    assert_eq!((failure.code, failure.retriable), (Code::StorageFull, true), "{failure}");
    assert_eq!(ports.row(&row.key).await.head.steps, steps, "what was answered is there, the rest is not");
    let mut accepted = 0;
    let refusal = loop {
        let large: Vec<_> = (0..50).map(|n| input(&format!("i{accepted}-{n}"), "s1")).collect();
        match ports.ledger.accept(large).await {
            Ok(verdicts) => accepted += verdicts.len() as u64,
            Err(failure) => break failure,
        }
        assert!(accepted < 100_000, "the limit should stop this");
    };
    assert_eq!(refusal.code, Code::StorageFull);
    assert_eq!(ports.ledger.pending_count(&row.key).await.unwrap(), 1 + accepted);

    limit_pages(&store, 1 << 30).await;
    ports.step(&owner, &row.key, 20).await;
    ports.accept(input("after", "s1")).await;
    store.close().await;
    let again = Ports::of(super::open(&path).await);
    assert_eq!(again.row(&key("s1")).await.head.steps, steps + 20);
    assert_eq!(again.ledger.pending_count(&row.key).await.unwrap(), 2 + accepted);
    let journal = again.journal.above(row.shard, 0, 100_000, usize::MAX).await.unwrap();
    assert_eq!(journal.iter().map(|row| row.seq).collect::<Vec<_>>(), (1..=journal.len() as u64).collect::<Vec<_>>());
    assert_eq!(Leases::shards(&store).await.expect_err("closed").code, Code::Unavailable);
}
