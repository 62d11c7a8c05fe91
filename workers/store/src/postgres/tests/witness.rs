//! Whose process is gone, as the database witnesses it: a connection that is closed says so, unless all were.

use domain::ports::Leases;
use schemas::id::{Shard, WorkerId};
use sqlx::{Connection, PgConnection};
use testkit::contract::build::worker;
use testkit::services::Server;

use super::super::{PostgresStore, statements};
use super::outages::{info, until};
use super::{fresh, fresh_url_on, open};

const URL: &str = "STEPFLEET_DATABASE_URL";

/// Two workers, each with a shard.
async fn two(url: &str) -> (PostgresStore, PostgresStore) {
    let (first, second) = (open(url).await, open(url).await);
    for (store, shard, name) in [(&first, 0, "w1"), (&second, 1, "w2")] {
        store.heartbeat(&info(name)).await.expect("a heartbeat");
        store.claim(Shard(shard), &worker(name), 3_600_000).await.expect("an answer").expect("it is free");
    }
    (first, second)
}

async fn owners(store: &PostgresStore) -> Vec<Option<WorkerId>> {
    store.shards().await.expect("shards").into_iter().map(|info| info.owner).collect()
}

/// Nobody is seen to be gone, and both workers of [`two`] keep what they have.
async fn all_are_there(store: &PostgresStore, why: &str) {
    assert!(store.release_gone().await.expect("an answer").is_empty(), "{why}");
    assert_eq!(owners(store).await, [Some(worker("w1")), Some(worker("w2")), None, None], "{why}");
}

/// Who is gone, once it is seen.
async fn gone(store: &PostgresStore) -> Vec<WorkerId> {
    let look = async || Some(store.release_gone().await.expect("an answer")).filter(|gone| !gone.is_empty());
    until("an end", look).await
}

#[tokio::test]
async fn a_worker_whose_connection_has_closed_is_gone() {
    let (stays, url) = fresh().await;
    let goes = open(&url).await;
    stays.heartbeat(&info("w1")).await.expect("a heartbeat");
    goes.heartbeat(&info("w2")).await.expect("a heartbeat");
    for (store, shard, name) in [(&stays, 0, "w1"), (&goes, 1, "w2"), (&goes, 2, "w2")] {
        store.claim(Shard(shard), &worker(name), 3_600_000).await.expect("an answer").expect("it is free");
    }
    goes.hold_role("archivist", &worker("w2"), 3_600_000).await.expect("an answer").expect("it is free");
    assert!(stays.release_gone().await.expect("an answer").is_empty(), "both are there");
    goes.close().await;
    assert_eq!(gone(&stays).await, [worker("w2")]);
    assert_eq!(owners(&stays).await, [Some(worker("w1")), None, None, None]);
    assert!(stays.hold_role("archivist", &worker("w1"), 1_000).await.expect("an answer").is_some());
    assert_eq!(stays.workers(3_600_000).await.expect("workers").len(), 1);
    stays.close().await;
}

#[tokio::test]
async fn a_standby_that_takes_over_says_nothing_of_connections_to_the_server_before() {
    let server = Server::start("postgres");
    // Up before the workers connect: its own start tells nothing of them.
    let standby = server.standby();
    let url = fresh_url_on(&server.told(URL)).await;
    let there = url.replace(&server.told(URL), &standby.told(URL));
    let _connected = two(&url).await;
    until("all of it on the standby", async || {
        let mut connection = PgConnection::connect(&there).await.ok()?;
        let owned = sqlx::query_scalar("SELECT count(*) FROM shards WHERE owner IS NOT NULL");
        let owned: i64 = owned.fetch_one(&mut connection).await.ok()?;
        (owned == 2).then_some(())
    })
    .await;
    server.kill();
    standby.promote();
    let first = open(&there).await;
    first.heartbeat(&info("w1")).await.expect("a heartbeat");
    all_are_there(&first, "who is first says nothing of the others").await;
    let second = open(&there).await;
    second.heartbeat(&info("w2")).await.expect("a heartbeat");
    all_are_there(&first, "both are connected again").await;
    second.close().await;
    assert_eq!(gone(&first).await, [worker("w2")], "it is a witness of its own connections");
    first.close().await;
}

#[tokio::test]
async fn a_server_that_starts_its_processes_anew_says_nothing_of_the_workers() {
    let server = Server::start("postgres");
    let url = fresh_url_on(&server.told(URL)).await;
    let (first, second) = two(&url).await;
    let mut connection = PgConnection::connect(&url).await.expect("a connection");
    let mut bystander = PgConnection::connect(&url).await.expect("a connection");
    // One process is killed; the server ends all others, and goes on itself.
    let killed = sqlx::raw_sql("COPY (SELECT 1) TO PROGRAM 'kill -KILL $PPID'").execute(&mut connection).await;
    killed.expect_err("nobody is left to answer");
    // It ends them a moment later. Once it has begun to, it lets nobody in before all of them are gone.
    until("the end of the others", async || bystander.ping().await.err()).await;
    until("the server", async || PgConnection::connect(&url).await.ok()).await;
    until("the first one", async || first.heartbeat(&info("w1")).await.ok()).await;
    all_are_there(&first, "who is first says nothing of the others").await;
    until("the other one", async || second.heartbeat(&info("w2")).await.ok()).await;
    second.close().await;
    assert_eq!(gone(&first).await, [worker("w2")]);
    first.close().await;
}

#[tokio::test]
async fn a_connection_of_a_pooler_is_no_witness() {
    let (stays, url) = fresh().await;
    stays.heartbeat(&info("w1")).await.expect("a heartbeat");
    // As a pooler opens it: without our settings.
    let mut pooled = PgConnection::connect(&url).await.expect("a connection");
    let heartbeat = statements().into_iter().find(|(name, _)| *name == "leases::heartbeat").expect("the statement");
    let heartbeat = sqlx::query(heartbeat.1).bind("w2").bind("host").bind("1").bind("[\"runner\"]").bind(false);
    heartbeat.execute(&mut pooled).await.expect("a heartbeat");
    let pid: i32 = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&mut pooled).await.expect("a row");
    pooled.close().await.expect("closed");
    let mut connection = PgConnection::connect(&url).await.expect("a connection");
    until("its end", async || {
        let count = sqlx::query_scalar("SELECT count(*) FROM pg_stat_activity WHERE pid = $1").bind(pid);
        let count: i64 = count.fetch_one(&mut connection).await.expect("a row");
        (count == 0).then_some(())
    })
    .await;
    assert!(stays.release_gone().await.expect("an answer").is_empty(), "the lease alone counts");
    assert_eq!(stays.workers(3_600_000).await.expect("workers").len(), 2);
    connection.close().await.expect("closed");
    stays.close().await;
}
