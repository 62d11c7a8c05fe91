//! Databases that are not there, not ours, older or newer: a clear error without the password, and
//! nothing is changed.

use domain::ports::Leases;
use testkit::contract::SHARDS;

use super::{OpenError, OpenOptions, PostgresStore, execute, fresh, fresh_url, open, options, try_open};
use testkit::services::postgres_url;

async fn refused(url: &str, options: OpenOptions) -> OpenError {
    let Err(error) = PostgresStore::open(url, options).await else { panic!("it opened") };
    let secret = url.split(':').nth(2).and_then(|rest| rest.split('@').next()).unwrap_or("no password");
    assert!(!error.to_string().contains(secret), "{error}");
    error
}

fn check(shards: Option<u16>) -> OpenOptions {
    OpenOptions { shards, create: false, ..options(SHARDS) }
}

#[tokio::test]
async fn only_a_migration_creates_a_store() {
    let url = fresh_url().await;
    let error = refused(&url, check(None)).await;
    assert!(matches!(error, OpenError::NotMigrated { .. }) && error.may_pass(), "{error}");
    let (one, two) = tokio::join!(open(&url), open(&url));
    assert_eq!(one.shards().await.unwrap().len(), usize::from(SHARDS), "two migrations at a time are one");
    one.close().await;
    two.close().await;
    let checked = PostgresStore::open(&url, check(None)).await.expect("now it is there");
    assert_eq!(checked.shard_count().await.unwrap(), SHARDS);
    let versions = checked.versions().await.expect("an answer");
    assert!(versions.database.starts_with("PostgreSQL "), "{versions:?}");
    assert_eq!(versions.schema, super::super::MIGRATIONS.newest());
    checked.close().await;
}

#[tokio::test]
async fn the_number_of_shards_is_fixed() {
    let (store, url) = fresh().await;
    store.close().await;
    for create in [true, false] {
        let error = refused(&url, OpenOptions { create, ..options(SHARDS + 1) }).await;
        assert!(matches!(error, OpenError::ShardCount { found: SHARDS, .. }), "{error}");
        assert!(error.to_string().contains(&format!("set it to {SHARDS}")), "{error}");
    }
    for wanted in [0, 1025] {
        assert!(matches!(refused(&url, options(wanted)).await, OpenError::BadShardCount { .. }));
    }
}

#[tokio::test]
async fn other_schema_versions_are_refused() {
    let (store, url) = fresh().await;
    store.close().await;
    execute(
        &url,
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (99, 'later', true, '\\x00', 0)",
    )
    .await;
    for create in [true, false] {
        let error = refused(&url, OpenOptions { create, ..options(SHARDS) }).await;
        assert!(matches!(error, OpenError::NewerSchema { found: 99, known: 14, .. }), "{error}");
        assert!(!error.may_pass());
    }
    execute(
        &url,
        "DELETE FROM _sqlx_migrations WHERE version >= 2; DROP TABLE roles, definitions, definition_versions, \
         memories, blobs, conversations, conversation_tags, conversation_participants, conversation_log, turns, \
         operations, spending",
    )
    .await;
    let error = refused(&url, check(None)).await;
    assert!(matches!(error, OpenError::OlderSchema { found: 1, known: 14, .. }), "{error}");
    assert!(error.may_pass() && error.to_string().contains("stepfleet migrate"), "{error}");
    open(&url).await.close().await;
    execute(&url, "UPDATE _sqlx_migrations SET checksum = '\\x00' WHERE version = 1").await;
    for create in [true, false] {
        let error = refused(&url, OpenOptions { create, ..options(SHARDS) }).await;
        assert!(matches!(error, OpenError::ForeignSchema { version: 1, .. }), "{error}");
    }
}

#[tokio::test]
async fn operators_are_told_how_many_connections_a_process_opens() {
    let (store, _) = fresh().await;
    let told = include_str!("../../../../../ops/deploy/README.md");
    let most = store.connections_max();
    assert!(told.contains(&format!("up to {most} connections")), "ops/deploy/README.md: {most} connections");
    store.close().await;
}

#[tokio::test]
async fn places_that_cannot_be_reached_are_named() {
    for url in ["mysql://user:secret@host/x", "postgres://user:secret@host:no-port/x", "nonsense"] {
        let Err(error) = try_open(url).await else { panic!("{url} opened") };
        assert!(matches!(error, OpenError::BadUrl { .. }) && !error.to_string().contains("secret"), "{error}");
    }
    let nobody = refused("postgres://user:secret@127.0.0.1:1/store", options(SHARDS)).await;
    assert!(matches!(nobody, OpenError::Unreachable { .. }) && nobody.may_pass(), "{nobody}");
    assert!(nobody.to_string().contains("127.0.0.1:1/store"), "{nobody}");
    let url = postgres_url();
    let (server, database) = url.rsplit_once('/').expect("a database");
    let none = refused(&format!("{server}/none"), options(SHARDS)).await;
    assert!(matches!(none, OpenError::NoDatabase { .. }) && none.to_string().contains("createdb"), "{none}");
    let (scheme, rest) = url.split_once("://").expect("a scheme");
    let (_, host) = rest.split_once('@').expect("a user");
    let stranger = refused(&format!("{scheme}://stranger:hush@{host}"), options(SHARDS)).await;
    assert!(matches!(stranger, OpenError::NotAllowed { .. }), "{stranger}, {database}");
}
