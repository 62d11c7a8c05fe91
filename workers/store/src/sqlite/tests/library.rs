//! The library's conversations in a file: the contract, its statements, its file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::context::{Content, Conversation, MessageRole, NewMessage, TurnStatus};
use domain::ports::library::{ConversationStore, Page, StoreError};
use schemas::id::{ConversationId, MessageId};
use schemas::problem::Code;
use serde_json::{Map, Value, json};
use sqlx::{AssertSqlSafe, Connection, Row, SqliteConnection};
use tempfile::TempDir;
use testkit::contract::engine_store as contract;

use super::super::SqliteConversations;
use super::super::header::LIBRARY_ID;
use super::super::library::{MIGRATIONS, SQL};
use super::{OpenError, fresh, open as open_fleet, try_open};

async fn open(path: &Path) -> SqliteConversations {
    SqliteConversations::open(path).await.expect("the file opens")
}

/// A fresh file in a directory that lives as long as the guard.
fn place() -> (PathBuf, TempDir) {
    let directory = TempDir::new().expect("a temporary directory");
    (directory.path().join("talks.db"), directory)
}

fn id(text: &str) -> ConversationId {
    ConversationId::parse(text).expect("an id")
}

fn conversation(name: &str) -> Conversation {
    Conversation {
        id: id(name),
        agent: "ana".into(),
        subject_id: None,
        title: None,
        created_at_ms: 1,
        updated_at_ms: 1,
        metadata: Map::new(),
    }
}

async fn execute(path: &Path, sql: &'static str) {
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
    let mut connection = SqliteConnection::connect_with(&options).await.expect("a connection");
    sqlx::raw_sql(sql).execute(&mut connection).await.expect("statements");
    connection.close().await.expect("closed");
}

async fn refusal(path: &Path) -> OpenError {
    match SqliteConversations::open(path).await {
        Ok(_) => panic!("{} opens", path.display()),
        Err(error) => error,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s_133_the_durable_store_keeps_the_contract() {
    let directories = TempDir::new().expect("a temporary directory");
    let made = std::sync::atomic::AtomicUsize::new(0);
    let make = async || {
        let number = made.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let store: Arc<dyn ConversationStore> = Arc::new(open(&directories.path().join(format!("{number}.db"))).await);
        store
    };
    contract::suite(&make).await;
    let kept = directories.path().join("kept.db");
    let again = async || {
        let store: Arc<dyn ConversationStore> = Arc::new(open(&kept).await);
        store
    };
    contract::durable(&again).await;
}

#[tokio::test]
async fn two_programs_on_one_file_see_each_other_and_lose_nothing() {
    let (path, _directory) = place();
    let (one, two) = (open(&path).await, open(&path).await);
    one.create_conversation(&conversation("c")).await.expect("created");
    assert_eq!(two.get_conversation(&id("c")).await, Ok(Some(conversation("c"))));
    let append = async |store: &SqliteConversations, from: i64| {
        for n in from..from + 20 {
            let name = MessageId::parse(&format!("m{n:02}")).expect("an id");
            let message = NewMessage::user("x").complete(&id("c"), name, n);
            store.append_messages(&id("c"), &[message]).await.expect("appended");
        }
    };
    tokio::join!(append(&one, 0), append(&two, 20));
    for store in [&one, &two] {
        let all = store.get_messages(&id("c"), Page::all()).await.expect("messages");
        let expected: Vec<String> = (0..40).map(|n| format!("m{n:02}")).collect();
        assert_eq!(all.iter().map(|one| one.id.to_string()).collect::<Vec<_>>(), expected);
    }
    one.close().await;
    let closed = one.get_conversation(&id("c")).await;
    assert!(matches!(&closed, Err(StoreError::Failed(failure)) if failure.code == Code::Unavailable), "{closed:?}");
    assert_eq!(two.get_conversation(&id("c")).await, Ok(Some(conversation("c"))), "the other one goes on");
}

/// All of them find the file blank; which one makes it is up to chance.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_that_start_at_once_share_a_new_file() {
    for _ in 0..10 {
        let (path, _directory) = place();
        let (one, two, three) = tokio::join!(open(&path), open(&path), open(&path));
        one.create_conversation(&conversation("c")).await.expect("created");
        for store in [two, three] {
            assert_eq!(store.get_conversation(&id("c")).await, Ok(Some(conversation("c"))));
        }
    }
}

#[tokio::test]
async fn what_could_not_be_read_again_is_not_written() {
    let (path, _directory) = place();
    let store = open(&path).await;
    store.create_conversation(&conversation("c")).await.expect("created");
    let deep = (0..200).fold(json!(1), |inner, _| Value::Array(vec![inner]));
    let names = ["m1", "m2"].map(|name| MessageId::parse(name).expect("an id"));
    let [fine, bad] = [Content::from("fine"), Content::Other(deep)];
    let messages = [fine, bad].into_iter().zip(names);
    let messages: Vec<_> = messages
        .map(|(content, name)| NewMessage::new(MessageRole::User, content).complete(&id("c"), name, 1))
        .collect();
    let refused = store.append_messages(&id("c"), &messages).await;
    assert!(
        matches!(&refused, Err(StoreError::Failed(failure)) if failure.code == Code::InvalidRequest),
        "{refused:?}"
    );
    assert_eq!(store.get_messages(&id("c"), Page::all()).await, Ok(Vec::new()), "neither of them");
}

#[tokio::test]
async fn times_beyond_four_digits_of_a_year_are_kept() {
    let (path, _directory) = place();
    let store = open(&path).await;
    store.create_conversation(&conversation("c")).await.expect("created");
    for (n, at_ms) in [i64::MAX, i64::MIN].into_iter().enumerate() {
        let name = MessageId::parse(&format!("m{n}")).expect("an id");
        let message = NewMessage::user("x").complete(&id("c"), name, at_ms);
        store.append_messages(&id("c"), &[message]).await.expect("appended");
    }
    let found = store.get_messages(&id("c"), Page::all()).await.expect("messages");
    assert_eq!(found.iter().map(|one| one.created_at_ms).collect::<Vec<_>>(), [i64::MIN, i64::MAX]);
}

/// Records are kept as JSON: these are of version 1.
#[tokio::test]
async fn what_was_written_long_ago_is_read() {
    let (path, _directory) = place();
    open(&path).await.close().await;
    let rows = r#"
        INSERT INTO conversations (id, value) VALUES ('c', '{"id":"c","agent":"ana",
            "created_at":"1970-01-01T00:00:00.001Z","updated_at":"1970-01-01T00:00:00.001Z"}');
        INSERT INTO messages (id, conversation_id, at_ms, value) VALUES ('m', 'c', 2, '{"id":"m","conversation_id":"c",
            "role":"user","event_type":"utterance","content":"hi","created_at":"1970-01-01T00:00:00.002Z"}');
        INSERT INTO turns (id, conversation_id, at_ms, value) VALUES ('t', 'c', 3, '{"id":"t","conversation_id":"c",
            "agent":"ana","input_messages":[],"output_messages":[],"provider_calls":[],"status":"running",
            "started_at":"1970-01-01T00:00:00.003Z"}');"#;
    execute(&path, rows).await;
    let store = open(&path).await;
    assert_eq!(store.get_conversation(&id("c")).await, Ok(Some(conversation("c"))));
    let hi = NewMessage::user("hi").complete(&id("c"), MessageId::parse("m").expect("an id"), 2);
    assert_eq!(store.get_messages(&id("c"), Page::all()).await, Ok(vec![hi]));
    let turns = store.list_turns(&id("c"), Page::all()).await.expect("turns");
    let [turn] = turns.as_slice() else { panic!("{turns:?}") };
    assert_eq!((turn.id.as_str(), turn.status, turn.started_at_ms), ("t", TurnStatus::Running, 3));
}

#[tokio::test]
async fn every_statement_of_it_finds_its_rows_by_an_index() {
    let (path, _directory) = place();
    let store = open(&path).await;
    for (name, sql) in SQL {
        let explain = sqlx::query(AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}")));
        let rows = explain.fetch_all(&mut *store.readers().lend().await.expect("a connection")).await;
        for row in rows.unwrap_or_else(|error| panic!("{name} does not prepare: {error}")) {
            let step: String = row.get("detail");
            assert!(!step.contains("TEMP B-TREE"), "{name} sorts: {step}");
            assert!(!step.starts_with("SCAN ") || step.starts_with("SCAN j "), "{name} scans: {step}");
        }
    }
}

#[tokio::test]
async fn files_of_others_are_refused_and_so_is_the_librarys_by_the_fleet() {
    let (store, fleets, _directory) = fresh().await;
    store.close().await;
    assert!(matches!(refusal(&fleets).await, OpenError::Foreign { .. }));
    open_fleet(&fleets).await.close().await;
    let (path, directory) = place();
    open(&path).await.close().await;
    let Err(error) = try_open(&path).await else { panic!("the fleet takes a file of the library") };
    assert!(matches!(error, OpenError::Foreign { application_id: LIBRARY_ID, .. }), "{error}");
    open(&path).await.close().await;
    let text = directory.path().join("text");
    std::fs::write(&text, "not a database ".repeat(20)).expect("written");
    assert!(matches!(refusal(&text).await, OpenError::NotADatabase { .. }));
    assert!(matches!(refusal(&directory.path().join("none/talks.db")).await, OpenError::NotWritable { .. }));
}

#[tokio::test]
async fn a_file_of_a_newer_release_is_refused() {
    let (path, _directory) = place();
    open(&path).await.close().await;
    let newer = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
        VALUES (99, 'later', true, x'00', 0)";
    execute(&path, newer).await;
    let error = refusal(&path).await;
    assert!(matches!(error, OpenError::NewerSchema { found: 99, .. }), "{error}");
}

#[test]
fn its_migrations_are_those_of_its_folder() {
    let folder = format!("{}/../../migrations/library", env!("CARGO_MANIFEST_DIR"));
    let files = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").file_name());
    let mut files: Vec<String> = files.map(|name| name.to_string_lossy().into_owned()).collect();
    files.sort();
    let known: Vec<String> = MIGRATIONS.0.iter().map(|(version, name, _)| format!("{version:04}_{name}.sql")).collect();
    assert_eq!(files, known);
}
