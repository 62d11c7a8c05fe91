//! Opening the store's file: every way in which that can fail is named, with the remedy, and
//! nothing is written to a file that is not ours.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use schemas::limits::{SHARDS_DEFAULT, SHARDS_MAX};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{Connection, SqliteConnection};

use super::failure::{self, code};
use super::header::{self, APPLICATION_ID, Kind};
use super::memories::Seen;
use super::readers::Readers;
use super::reserve::{has_log, reserve};
use super::writer::Writer;
use super::{Inner, SqliteStore, accept, checkpoint, commit};
use crate::batch::Queue;
use crate::migrate::Migrations;
use crate::open::{OpenError, OpenOptions, SQLITE_MIN};

const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// A commit writes every page that it touches: with 8 KiB pages it takes longer, with the same number
/// of them.
const PAGE_BYTES: u32 = 4096;
/// The log is folded into the file beside the writer (see `checkpoint`). If that falls behind, the
/// writer does it itself beyond this many pages (128 MiB).
const CHECKPOINT_PAGES: &str = "32768";
/// The log keeps no more than this on disk after a rush.
const LOG_BYTES_KEPT: &str = "67108864";
/// Negative: kibibytes.
const WRITER_CACHE: &str = "-16384";
const READER_CACHE: &str = "-4096";
/// Prepared statements that a connection keeps: more than there are.
const STATEMENTS_MAX: usize = 512;
/// Files up to this size are checked page by page at every start; larger ones as they are read.
const CHECKED_BYTES_MAX: u64 = 64 << 20;
/// A worker that gave no sign of life for a day is forgotten.
const WORKER_FORGOTTEN_MS: i64 = 24 * 3_600_000;

pub(crate) const MIGRATIONS: Migrations = Migrations(&[
    (1, "initial", include_str!("../../../../migrations/sqlite/0001_initial.sql")),
    (2, "roles", include_str!("../../../../migrations/sqlite/0002_roles.sql")),
    (3, "definitions", include_str!("../../../../migrations/sqlite/0003_definitions.sql")),
    (4, "conversations", include_str!("../../../../migrations/sqlite/0004_conversations.sql")),
    (5, "memories", include_str!("../../../../migrations/sqlite/0005_memories.sql")),
    (6, "limits", include_str!("../../../../migrations/sqlite/0006_limits.sql")),
    (7, "summaries", include_str!("../../../../migrations/sqlite/0007_summaries.sql")),
    (8, "memory_archive", include_str!("../../../../migrations/sqlite/0008_memory_archive.sql")),
    (9, "transcript_archive", include_str!("../../../../migrations/sqlite/0009_transcript_archive.sql")),
    (10, "lost_starts", include_str!("../../../../migrations/sqlite/0010_lost_starts.sql")),
    (11, "agent_deadlines", include_str!("../../../../migrations/sqlite/0011_agent_deadlines.sql")),
    (12, "light_records", include_str!("../../../../migrations/sqlite/0012_light_records.sql")),
    (13, "active_turns", include_str!("../../../../migrations/sqlite/0013_active_turns.sql")),
    (14, "memory_models", include_str!("../../../../migrations/sqlite/0014_memory_models.sql")),
]);

const SELECT_VERSION: &str = "SELECT sqlite_version()";
const SELECT_TABLES: &str = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?1";
const SELECT_APPLIED: &str = "SELECT max(version) FROM _sqlx_migrations";
const SELECT_SHARDS: &str = "SELECT shards FROM meta";
const INSERT_META: &str =
    "INSERT INTO meta (id, shards, version, created_at_ms) VALUES (1, ?1, ?2, ?3) ON CONFLICT DO NOTHING";
const INSERT_SHARDS: &str = "
    WITH RECURSIVE numbers (shard) AS (SELECT 0 UNION ALL SELECT shard + 1 FROM numbers WHERE shard + 1 < ?1)
    INSERT INTO shards (shard) SELECT shard FROM numbers WHERE true ON CONFLICT DO NOTHING";
const FORGET_WORKERS: &str =
    "DELETE FROM workers WHERE heartbeat_at_ms < cast(unixepoch('subsec') * 1000 AS INTEGER) - ?1";
const CHECK_PAGES: &str = "PRAGMA quick_check(1)";

#[cfg(test)]
pub(super) const SQL: &[(&str, &str)] = &[
    ("open::version", SELECT_VERSION),
    ("open::tables", SELECT_TABLES),
    ("open::applied", SELECT_APPLIED),
    ("open::shards", SELECT_SHARDS),
    ("open::insert_meta", INSERT_META),
    ("open::insert_shards", INSERT_SHARDS),
    ("open::forget_workers", FORGET_WORKERS),
];

impl SqliteStore {
    /// Opens the store's file, creating or migrating it as needed. Must run within a runtime: the
    /// tasks that gather batches start here.
    pub async fn open(path: &Path, options: OpenOptions) -> Result<Self, OpenError> {
        if let Some(wanted) = options.shards.filter(|shards| !(1..=SHARDS_MAX).contains(shards)) {
            return Err(OpenError::BadShardCount { wanted });
        }
        let known = look(path, options.create, APPLICATION_ID)?;
        let mut connection = connect(path, known).await.map_err(|error| open_error(path, error))?;
        let prepared = prepare(path, &mut connection, &options, known).await;
        let shards = match prepared {
            Ok(shards) => shards,
            Err(error) => {
                // The first error is the one to report.
                let _ = connection.close().await;
                return Err(error);
            }
        };
        let reading = connection_options(path).read_only(true).pragma("cache_size", READER_CACHE);
        let readers = Readers::open(reading).await.map_err(|error| open_error(path, error))?;
        let writer = Arc::new(Writer::new(writer_options(path), connection));
        let folding = connection_options(path).pragma("wal_autocheckpoint", "0");
        let folding = SqliteConnection::connect_with(&folding).await.map_err(|error| open_error(path, error))?;
        let checkpointer = checkpoint::start(folding, Arc::downgrade(&writer));
        Ok(Self(Arc::new(Inner {
            shards,
            accepts: Queue::start(accept::runner(writer.clone(), options.clock.clone(), shards)),
            commits: Queue::start(commit::runner(writer.clone(), options.clock.clone(), shards)),
            clock: options.clock,
            writer,
            readers,
            seen: Seen::default(),
            checkpointer,
        })))
    }
}

/// What the file is, before it is opened. `Ours` or `Blank`, or the reason to stop.
pub(super) fn look(path: &Path, create: bool, application_id: i64) -> Result<Kind, OpenError> {
    let path = path.to_owned();
    match header::look(&path, application_id) {
        Ok(Kind::Missing) if !create => Err(OpenError::Missing { path }),
        Ok(Kind::Missing) => Ok(Kind::Blank),
        Ok(Kind::NotADatabase) => Err(OpenError::NotADatabase { path }),
        Ok(Kind::Foreign(application_id)) => Err(OpenError::Foreign { path, application_id }),
        Ok(kind) => Ok(kind),
        Err(error) => Err(OpenError::NotWritable { path, detail: error.to_string() }),
    }
}

pub(super) fn connection_options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .foreign_keys(true)
        .busy_timeout(BUSY_TIMEOUT)
        .statement_cache_capacity(STATEMENTS_MAX)
}

fn writer_options(path: &Path) -> SqliteConnectOptions {
    connection_options(path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .pragma("cache_size", WRITER_CACHE)
        // Keeps the images that undo a failed statement off the disk.
        .pragma("temp_store", "memory")
        .pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
        .pragma("journal_size_limit", LOG_BYTES_KEPT)
}

/// Gives a blank file its mark, in a transaction of its own and before the log exists, so that no crash
/// leaves a file that could be anybody's.
pub(super) async fn mark(path: &Path, application_id: i64) -> Result<(), sqlx::Error> {
    let first = connection_options(path)
        .create_if_missing(true)
        .page_size(PAGE_BYTES)
        .journal_mode(SqliteJournalMode::Delete)
        .pragma("application_id", application_id.to_string());
    SqliteConnection::connect_with(&first).await?.close().await
}

/// The writing connection.
async fn connect(path: &Path, known: Kind) -> Result<SqliteConnection, sqlx::Error> {
    if known == Kind::Blank {
        mark(path, APPLICATION_ID).await?;
    }
    // Only without a log does SQLite note in the file's header that it has one: it takes a log that
    // is there for a switch already made, and other programs would read the file as if it had none.
    if !has_log(path) {
        SqliteConnection::connect_with(&writer_options(path)).await?.close().await?;
    }
    let database = path.to_owned();
    // Without room reserved, commits are slower; nothing else follows from it.
    let _ = tokio::task::spawn_blocking(move || reserve(&database)).await;
    SqliteConnection::connect_with(&writer_options(path)).await
}

/// Checks everything that can be checked, migrates, and returns the number of shards.
async fn prepare(
    path: &Path,
    connection: &mut SqliteConnection,
    options: &OpenOptions,
    known: Kind,
) -> Result<u16, OpenError> {
    let fail = |error| open_error(path, error);
    let applied = checked(path, connection, known, &MIGRATIONS).await?;
    let found = stored_shards(connection).await.map_err(fail)?;
    if let (Some(found), Some(wanted)) = (found, options.shards)
        && found != wanted
    {
        return Err(OpenError::ShardCount { place: path.display().to_string(), found, wanted });
    }
    let place = path.display().to_string();
    if !options.create && applied < MIGRATIONS.newest() {
        return Err(OpenError::OlderSchema { place, found: applied, known: MIGRATIONS.newest() });
    }
    MIGRATIONS.migrator().run(&mut *connection).await.map_err(|error| MIGRATIONS.open_error(place, error, fail))?;
    let shards = found.or(options.shards).unwrap_or(SHARDS_DEFAULT);
    sqlx::query(INSERT_META)
        .bind(i64::from(shards))
        .bind(env!("CARGO_PKG_VERSION"))
        .bind(options.clock.now_ms())
        .execute(&mut *connection)
        .await
        .map_err(fail)?;
    sqlx::query(INSERT_SHARDS).bind(i64::from(shards)).execute(&mut *connection).await.map_err(fail)?;
    sqlx::query(FORGET_WORKERS).bind(WORKER_FORGOTTEN_MS).execute(&mut *connection).await.map_err(fail)?;
    Ok(shards)
}

/// Checks SQLite itself, the pages of a file that was ours before, and that its schema is not of a
/// newer release; returns the version of the schema.
pub(super) async fn checked(
    path: &Path,
    connection: &mut SqliteConnection,
    known: Kind,
    migrations: &Migrations,
) -> Result<i64, OpenError> {
    let fail = |error| open_error(path, error);
    let version: String = sqlx::query_scalar(SELECT_VERSION).fetch_one(&mut *connection).await.map_err(fail)?;
    if parse_version(&version) < Some(SQLITE_MIN) {
        return Err(OpenError::OldSqlite { found: version });
    }
    if known == Kind::Ours {
        check_pages(path, connection).await?;
    }
    let applied = applied_version(connection).await.map_err(fail)?;
    match migrations.newer(applied) {
        Some(found) => {
            let place = path.display().to_string();
            Err(OpenError::NewerSchema { place, found, known: migrations.newest() })
        }
        None => Ok(applied),
    }
}

async fn check_pages(path: &Path, connection: &mut SqliteConnection) -> Result<(), OpenError> {
    if std::fs::metadata(path).map_or(0, |data| data.len()) > CHECKED_BYTES_MAX {
        return Ok(());
    }
    let answer: String =
        sqlx::query_scalar(CHECK_PAGES).fetch_one(connection).await.map_err(|error| open_error(path, error))?;
    match answer.as_str() {
        "ok" => Ok(()),
        detail => Err(OpenError::Corrupt { path: path.to_owned(), detail: detail.to_owned() }),
    }
}

async fn has_table(connection: &mut SqliteConnection, name: &str) -> Result<bool, sqlx::Error> {
    let count: i64 = sqlx::query_scalar(SELECT_TABLES).bind(name.to_owned()).fetch_one(connection).await?;
    Ok(count > 0)
}

async fn stored_shards(connection: &mut SqliteConnection) -> Result<Option<u16>, sqlx::Error> {
    if !has_table(connection, "meta").await? {
        return Ok(None);
    }
    let shards: Option<i64> = sqlx::query_scalar(SELECT_SHARDS).fetch_optional(connection).await?;
    Ok(shards.and_then(|shards| u16::try_from(shards).ok()))
}

/// Zero for a file without a schema.
async fn applied_version(connection: &mut SqliteConnection) -> Result<i64, sqlx::Error> {
    if !has_table(connection, "_sqlx_migrations").await? {
        return Ok(0);
    }
    let version: Option<i64> = sqlx::query_scalar(SELECT_APPLIED).fetch_one(connection).await?;
    Ok(version.unwrap_or(0))
}

fn parse_version(text: &str) -> Option<(u32, u32, u32)> {
    let mut parts = text.split('.').map(str::parse);
    Some((parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?))
}

pub(super) fn open_error(path: &Path, error: sqlx::Error) -> OpenError {
    let path = path.to_owned();
    let detail = error.as_database_error().map_or_else(|| error.to_string(), |error| error.message().to_owned());
    match code(&error) {
        Some(failure::CORRUPT) => OpenError::Corrupt { path, detail },
        Some(failure::NOTADB) => OpenError::NotADatabase { path },
        Some(failure::FULL) => OpenError::Full { path },
        Some(failure::BUSY | failure::LOCKED) => OpenError::Busy { path },
        Some(failure::CANTOPEN | failure::READONLY | failure::IOERR) => OpenError::NotWritable { path, detail },
        _ => OpenError::Other { path, detail },
    }
}
