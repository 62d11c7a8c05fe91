//! Files that are not a store of ours: a clear error, and the file stays as it was.

use std::fs;
use std::path::Path;

use domain::ports::{Leases, WorkerInfo};
use sqlx::{AssertSqlSafe, Connection, SqliteConnection};
use tempfile::TempDir;
use testkit::contract::build::{create, key, worker};
use testkit::contract::{Ports, SHARDS};

use super::{OpenError, OpenOptions, SqliteStore, fresh, open, options, try_open};

async fn execute(path: &Path, sql: &str) {
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path).create_if_missing(true);
    let mut connection = SqliteConnection::connect_with(&options).await.expect("a connection");
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut connection).await.expect("a statement");
    connection.close().await.expect("closed");
}

/// Names and contents of a directory.
fn contents(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry"));
    let mut all: Vec<_> = entries
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path()).unwrap_or_default()))
        .collect();
    all.sort();
    all
}

/// Opening fails, names the file, and changes nothing in its directory.
async fn refused(path: &Path) -> OpenError {
    let before = contents(path.parent().expect("a directory"));
    let Err(error) = try_open(path).await else { panic!("{} should not open", path.display()) };
    assert!(error.to_string().contains(&path.display().to_string()), "the file is named: {error}");
    assert!(contents(path.parent().expect("a directory")) == before, "something was written: {error}");
    error
}

#[tokio::test]
async fn a_database_of_another_program_stays_untouched() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("other.db");
    execute(&path, "CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)").await;
    assert!(matches!(refused(&path).await, OpenError::Foreign { application_id: 0, .. }));
    execute(&path, "PRAGMA application_id = 77").await;
    assert!(matches!(refused(&path).await, OpenError::Foreign { application_id: 77, .. }));
    execute(&path, "PRAGMA journal_mode = WAL").await;
    assert!(matches!(refused(&path).await, OpenError::Foreign { .. }));
}

#[tokio::test]
async fn garbage_and_fragments_are_no_database() {
    let directory = TempDir::new().expect("a directory");
    for (name, bytes) in [("text", b"not a database, but long enough to be one ".repeat(100)), ("short", vec![0; 7])] {
        let path = directory.path().join(name);
        fs::write(&path, bytes).expect("written");
        assert!(matches!(refused(&path).await, OpenError::NotADatabase { .. }), "{name}");
    }
    let path = directory.path().join("cut");
    fs::write(&path, b"SQLite format 3\0").expect("written");
    assert!(matches!(refused(&path).await, OpenError::NotADatabase { .. }));
}

#[tokio::test]
async fn a_truncated_store_is_damaged() {
    let (store, path, _directory) = fresh().await;
    store.close().await;
    let bytes = fs::read(&path).expect("the file");
    for keep in [bytes.len() / 2, bytes.len() - 8192] {
        fs::write(&path, &bytes[..keep]).expect("written");
        let Err(error) = try_open(&path).await else { panic!("{keep} of {} bytes opened", bytes.len()) };
        assert!(matches!(error, OpenError::Corrupt { .. }), "{error}");
        assert!(error.to_string().contains("store.db"), "{error}");
    }
    // Damage in the middle, with the length as it was.
    let mut damaged = bytes.clone();
    let middle = bytes.len() / 2 / 8192 * 8192;
    damaged[middle..middle + 8192].fill(0xA5);
    fs::write(&path, damaged).expect("written");
    assert!(matches!(try_open(&path).await, Err(OpenError::Corrupt { .. })));
    fs::write(&path, bytes).expect("written");
    open(&path).await;
}

#[tokio::test]
async fn places_that_cannot_be_written_are_named() {
    let directory = TempDir::new().expect("a directory");
    let file = directory.path().join("file");
    fs::write(&file, "").expect("written");
    let below_a_file = file.join("store.db");
    let no_directory = directory.path().join("none").join("store.db");
    let a_directory = directory.path().join("store.db");
    fs::create_dir(&a_directory).expect("created");
    for path in [below_a_file, no_directory, a_directory] {
        let Err(error) = try_open(&path).await else { panic!("{} should not open", path.display()) };
        assert!(matches!(error, OpenError::NotWritable { .. }), "{error:?}");
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    }
}

#[tokio::test]
async fn a_missing_file_is_created_only_if_asked() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("store.db");
    let no_create = || OpenOptions { create: false, ..options(SHARDS) };
    let missing = SqliteStore::open(&path, no_create()).await;
    assert!(matches!(missing, Err(OpenError::Missing { .. })));
    assert!(!path.exists());
    open(&path).await.close().await;
    SqliteStore::open(&path, no_create()).await.expect("now it is there").close().await;
}

#[tokio::test]
async fn the_number_of_shards_is_fixed() {
    let (store, path, _directory) = fresh().await;
    store.close().await;
    match SqliteStore::open(&path, options(SHARDS + 1)).await {
        Err(error @ OpenError::ShardCount { found: SHARDS, .. }) => {
            assert!(error.to_string().contains(&format!("set it to {SHARDS}")), "{error}");
        }
        other => panic!("should be refused: {:?}", other.err()),
    }
    let any = SqliteStore::open(&path, OpenOptions { shards: None, ..options(1) }).await.expect("any number");
    assert_eq!(domain::ports::Leases::shard_count(&any).await.unwrap(), SHARDS);
    for wanted in [0, 1025] {
        let result = SqliteStore::open(&path, options(wanted)).await;
        assert!(matches!(result, Err(OpenError::BadShardCount { .. })));
    }
}

#[tokio::test]
async fn a_newer_schema_is_left_alone() {
    let (store, path, _directory) = fresh().await;
    store.close().await;
    execute(
        &path,
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (99, 'later', 1, x'00', 0)",
    )
    .await;
    assert!(matches!(refused(&path).await, OpenError::NewerSchema { found: 99, known: 14, .. }));
    execute(&path, "DELETE FROM _sqlx_migrations WHERE version = 99").await;
    execute(&path, "UPDATE _sqlx_migrations SET checksum = x'00'").await;
    assert!(matches!(refused(&path).await, OpenError::ForeignSchema { version: 1, .. }));
}

#[tokio::test]
async fn a_worker_hears_of_a_schema_that_it_does_not_know() {
    let (store, path, _directory) = fresh().await;
    let info = WorkerInfo {
        worker: worker("w1"),
        host: "host".to_owned(),
        version: "1".to_owned(),
        roles: vec!["runner".to_owned()],
        draining: false,
        heartbeat_age_ms: 0,
    };
    assert_eq!(store.heartbeat(&info).await.expect("a heartbeat").newer_schema, None);
    execute(
        &path,
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (99, 'later', 1, x'00', 0), (100, 'not whole', 0, x'00', 0)",
    )
    .await;
    assert_eq!(store.heartbeat(&info).await.expect("a heartbeat").newer_schema, Some(99));
    store.close().await;
}

#[tokio::test]
async fn an_older_schema_is_changed_only_if_asked() {
    let (store, path, _directory) = fresh().await;
    let versions = store.versions().await.expect("an answer");
    assert!(versions.database.starts_with("SQLite 3."), "{versions:?}");
    assert_eq!(versions.schema, super::super::MIGRATIONS.newest());
    store.close().await;
    execute(&path, "DELETE FROM _sqlx_migrations WHERE version > 1").await;
    let refused = SqliteStore::open(&path, OpenOptions { create: false, ..options(SHARDS) }).await;
    assert!(matches!(refused, Err(OpenError::OlderSchema { found: 1, .. })));
}

#[tokio::test]
async fn what_was_committed_is_there_again() {
    let (store, path, directory) = fresh().await;
    let ports = Ports::of(store.clone());
    ports.created("s1", "agent").await;
    ports.step(&testkit::contract::build::worker("w1"), &key("s1"), 3).await;
    // Not closed: a second set of connections meets the log as a crash leaves it.
    let copy = directory.path().join("copy.db");
    for suffix in ["", "-wal"] {
        let name = |base: &Path| format!("{}{suffix}", base.display());
        fs::copy(name(&path), name(&copy)).expect("copied");
    }
    let again = Ports::of(open(&copy).await);
    assert_eq!(again.row(&key("s1")).await, ports.row(&key("s1")).await);
    assert_eq!(again.journal.latest(&key("s1")).await.unwrap(), ports.journal.latest(&key("s1")).await.unwrap());
    store.close().await;
    let closed = ports.ledger.accept(vec![create("a9", "s9", "agent")]).await.expect_err("closed");
    assert_eq!(closed.code, schemas::problem::Code::Unavailable);
    let reopened = Ports::of(open(&path).await);
    assert_eq!(reopened.row(&key("s1")).await.head.steps, 3);
}

#[tokio::test]
async fn a_crash_while_creating_leaves_a_file_that_can_be_finished() {
    let directory = TempDir::new().expect("a directory");
    let empty = directory.path().join("empty.db");
    fs::write(&empty, "").expect("written");
    open(&empty).await.close().await;
    let marked = directory.path().join("marked.db");
    execute(&marked, &format!("PRAGMA application_id = {}", super::super::header::APPLICATION_ID)).await;
    open(&marked).await.close().await;
    // Migrated, but without the row that fixes the shards.
    let (store, path, _guard) = fresh().await;
    store.close().await;
    execute(&path, "DELETE FROM meta; DELETE FROM shards").await;
    let store = open(&path).await;
    assert_eq!(domain::ports::Leases::shards(&store).await.unwrap().len(), usize::from(SHARDS));
}

#[tokio::test]
async fn the_file_says_that_it_has_a_log() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("ledger.db");
    // Write and read version of the file format: 2 is a file with a write-ahead log.
    let versions = |path: &Path| fs::read(path).expect("the file")[18..20].to_vec();
    for _ in 0..2 {
        let store = try_open(&path).await.expect("it opens");
        assert_eq!(versions(&path), [2, 2]);
        store.close().await;
        assert_eq!(versions(&path), [2, 2]);
        // As one that was made with a log lying there already.
        let mut bytes = fs::read(&path).expect("the file");
        bytes[18..20].copy_from_slice(&[1, 1]);
        fs::write(&path, bytes).expect("written");
    }
}
