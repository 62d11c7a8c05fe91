//! A database that goes and comes back, and a process that is older than the schema.

use std::time::Duration;

use domain::failure::{Certainty, Failure};
use domain::ports::{Commits, Leases, Ledger, WorkerInfo};
use schemas::problem::Code;
use testkit::contract::Ports;
use testkit::contract::build::{create, input, key, next_commit, worker};
use testkit::services::Server;

use super::{execute, fresh, fresh_url_on, open, try_open};
use crate::open::OpenError;

pub(super) fn info(name: &str) -> WorkerInfo {
    WorkerInfo {
        worker: worker(name),
        host: "host".to_owned(),
        version: "1".to_owned(),
        roles: vec!["runner".to_owned()],
        draining: false,
        heartbeat_age_ms: 0,
    }
}

/// Asks until the answer is as wanted, for half a minute at most.
pub(super) async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..600 {
        if let Some(answer) = ask().await {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{what} did not come true");
}

#[tokio::test]
async fn a_database_that_is_killed_loses_nothing_and_is_found_again() {
    let server = Server::start("postgres");
    let url = fresh_url_on(&server.told("STEPFLEET_DATABASE_URL")).await;
    let store = open(&url).await;
    let (ports, owner) = (Ports::of(store.clone()), worker("w1"));
    let row = ports.created("s1", "agent").await;
    let epoch = ports.own(row.shard, &owner).await;
    store.heartbeat(&info("w1")).await.expect("a heartbeat");
    server.kill();
    // The first statement on a connection that broke cannot know more; the next one cannot even be sent.
    let is_away = |failure: &Failure| failure.code == Code::Unavailable && failure.retriable;
    for n in 0..3 {
        let failure = store.accept(vec![input(&format!("lost-{n}"), "s1")]).await.expect_err("it is away");
        assert!(is_away(&failure), "{failure}");
        assert!(n == 0 || failure.certainty == Certainty::DidNotHappen, "{failure:?}");
        let failure = store.commit(&owner, vec![next_commit(&row, epoch, 1)]).await.expect_err("it is away");
        assert!(is_away(&failure), "{failure}");
        assert!(n == 0 || failure.certainty == Certainty::DidNotHappen, "{failure:?}");
    }
    assert!(is_away(&ports.sessions.session(&key("s1")).await.expect_err("it is away")));
    assert!(is_away(&store.shards().await.expect_err("it is away")));
    assert!(matches!(try_open(&url).await, Err(OpenError::Unreachable { .. })));

    server.start_again();
    until("a connection", async || store.ping().await.ok()).await;
    assert!(store.release_gone().await.expect("an answer").is_empty(), "a restart says nothing of the workers");
    assert_eq!(ports.row(&row.key).await, row, "what was answered is there, the rest is not");
    ports.commit_one(&owner, next_commit(&row, epoch, 1)).await;
    ports.accept(input("after", "s1")).await;
    assert_eq!(ports.ledger.pending_count(&row.key).await.unwrap(), 2);
    store.close().await;
}

#[tokio::test]
async fn connections_that_broke_while_they_were_idle_fail_nobody() {
    let server = Server::start("postgres");
    let url = fresh_url_on(&server.told("STEPFLEET_DATABASE_URL")).await;
    let store = open(&url).await;
    let (ports, owner) = (Ports::of(store.clone()), worker("w1"));
    let row = ports.created("s1", "agent").await;
    let epoch = ports.own(row.shard, &owner).await;
    ports.commit_one(&owner, next_commit(&row, epoch, 1)).await;
    let row = ports.row(&row.key).await;
    server.kill();
    store.shards().await.expect_err("whoever looks notices");
    server.start_again();
    until("a connection", async || store.ping().await.ok()).await;
    // Both go over connections of before.
    ports.accept(input("after", "s1")).await;
    ports.commit_one(&owner, next_commit(&row, epoch, 1)).await;
    let row = ports.row(&row.key).await;
    store.shards().await.expect("a connection that lasts");
    // Now the database is there all the time: whoever asks first connects anew, and fails at nothing.
    let all = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
               WHERE datname = current_database() AND pid <> pg_backend_pid()";
    execute(&url, all).await;
    // No connection is trusted for so long.
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    store.shards().await.expect("one that is asked first");
    ports.accept(input("later", "s1")).await;
    ports.commit_one(&owner, next_commit(&row, epoch, 1)).await;
    store.close().await;
}

#[tokio::test]
async fn a_worker_hears_of_a_schema_that_it_does_not_know() {
    let (store, url) = fresh().await;
    assert_eq!(store.heartbeat(&info("w1")).await.expect("a heartbeat").newer_schema, None);
    execute(
        &url,
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (99, 'later', true, '\\x00', 0), (100, 'not whole', false, '\\x00', 0)",
    )
    .await;
    assert_eq!(store.heartbeat(&info("w1")).await.expect("a heartbeat").newer_schema, Some(99));
    store.close().await;
}

#[tokio::test]
async fn a_closed_store_says_so() {
    let (store, _) = fresh().await;
    store.close().await;
    let failure = store.accept(vec![create("a1", "s1", "agent")]).await.expect_err("closed");
    assert_eq!((failure.code, failure.certainty), (Code::Unavailable, Certainty::DidNotHappen));
    assert_eq!(store.shards().await.expect_err("closed").code, Code::Unavailable);
}

#[tokio::test]
async fn the_clocks_of_one_machine_agree() {
    let (store, _) = fresh().await;
    let offset = store.clock_offset_ms().await.expect("an answer");
    assert!(offset.abs() < 60_000, "{offset}");
    store.close().await;
}
