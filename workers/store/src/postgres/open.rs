//! Opening the store in a database: every way in which that can fail is named, with the remedy.
//! Only who asks for it changes the schema; everybody else checks that it is the one they know.

use std::array;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use schemas::limits::{SHARDS_DEFAULT, SHARDS_MAX};
use sqlx::{Connection, PgConnection};

use super::connect::{Address, connect};
use super::failure::{code, is_lost, is_untrusted};
use super::link::Link;
use super::pool::Pool;
use super::rows::now;
use super::time::Time;
use super::writer::Writer;
use super::{Inner, PostgresStore, accept, commit, lookup, memories, scan};
use crate::batch::Queue;
use crate::migrate::Migrations;
use crate::open::{OpenError, OpenOptions};

/// The first version whose settings bound everything that must be bounded.
const POSTGRES_MIN: i32 = 140_000;
/// Connections for reads, marks and upkeep.
const POOL_MAX: usize = 4;
/// A worker that gave no sign of life for a day is forgotten.
const WORKER_FORGOTTEN_MS: i64 = 24 * 3_600_000;

pub(crate) const MIGRATIONS: Migrations = Migrations(&[
    (1, "initial", include_str!("../../../../migrations/postgres/0001_initial.sql")),
    (2, "roles", include_str!("../../../../migrations/postgres/0002_roles.sql")),
    (3, "definitions", include_str!("../../../../migrations/postgres/0003_definitions.sql")),
    (4, "conversations", include_str!("../../../../migrations/postgres/0004_conversations.sql")),
    (5, "memories", include_str!("../../../../migrations/postgres/0005_memories.sql")),
    (6, "limits", include_str!("../../../../migrations/postgres/0006_limits.sql")),
    (7, "summaries", include_str!("../../../../migrations/postgres/0007_summaries.sql")),
    (8, "memory_archive", include_str!("../../../../migrations/postgres/0008_memory_archive.sql")),
    (9, "transcript_archive", include_str!("../../../../migrations/postgres/0009_transcript_archive.sql")),
    (10, "lost_starts", include_str!("../../../../migrations/postgres/0010_lost_starts.sql")),
    (11, "agent_deadlines", include_str!("../../../../migrations/postgres/0011_agent_deadlines.sql")),
    (12, "light_records", include_str!("../../../../migrations/postgres/0012_light_records.sql")),
    (13, "active_turns", include_str!("../../../../migrations/postgres/0013_active_turns.sql")),
    (14, "memory_models", include_str!("../../../../migrations/postgres/0014_memory_models.sql")),
]);

const SELECT_VERSION: &str = "
    SELECT current_setting('server_version_num')::int4, current_setting('server_version'),
        current_setting('server_encoding')";
/// Whether the server was built with the quicker way to compress.
const HAS_LZ4: &str = "
    SELECT coalesce((SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression'), false)";
const HAS_TABLE: &str = "SELECT to_regclass($1) IS NOT NULL";
const SELECT_APPLIED: &str = "SELECT version, checksum FROM _sqlx_migrations WHERE success ORDER BY version";
const SELECT_SHARDS: &str = "SELECT shards FROM meta";
const INSERT_META: &str = concat!(
    "INSERT INTO meta (id, shards, version, created_at_ms) VALUES (1, $1, $2, ",
    now!(),
    ") ON CONFLICT DO NOTHING"
);
const INSERT_SHARDS: &str =
    "INSERT INTO shards (shard) SELECT generate_series(0, (SELECT shards FROM meta) - 1) ON CONFLICT DO NOTHING";
const FORGET_WORKERS: &str = concat!("DELETE FROM workers WHERE heartbeat_at_ms < ", now!(), " - $1");

#[cfg(test)]
pub(super) const SQL: &[(&str, &str)] = &[
    ("open::version", SELECT_VERSION),
    ("open::has_lz4", HAS_LZ4),
    ("open::has_table", HAS_TABLE),
    ("open::applied", SELECT_APPLIED),
    ("open::shards", SELECT_SHARDS),
    ("open::insert_meta", INSERT_META),
    ("open::insert_shards", INSERT_SHARDS),
    ("open::forget_workers", FORGET_WORKERS),
];

impl PostgresStore {
    /// Opens the store in a database, creating or migrating it if asked to. Must run within a
    /// runtime: the tasks that gather batches start here.
    ///
    /// # Errors
    /// See [`OpenError`]; none of them tells the password.
    pub async fn open(url: &str, options: OpenOptions) -> Result<Self, OpenError> {
        if let Some(wanted) = options.shards.filter(|shards| !(1..=SHARDS_MAX).contains(shards)) {
            return Err(OpenError::BadShardCount { wanted });
        }
        let address = Address::parse(url).map_err(|detail| OpenError::BadUrl { detail })?;
        let place = address.place();
        let mut connection =
            connect(&address.for_migrating()).await.map_err(|error| open_error(place.clone(), error))?;
        let prepared = prepare(&place, &mut connection, &options).await;
        let has_lz4 = sqlx::query_scalar(HAS_LZ4).fetch_one(&mut connection).await;
        // Whatever came of it, this connection has done its work.
        let _ = connection.close().await;
        let shards = prepared?;
        let writing = address.for_writing(has_lz4.unwrap_or(false));
        let link = Arc::new(Link::new(place));
        let writer = || Writer::new(writing.clone(), link.clone());
        // They connect when they are first used.
        let (accepting, looking_up, scanning) = (writer(), writer(), writer());
        let (defining, talking, remembering) = (writer(), writer(), writer());
        let committing = array::from_fn(|_| writer());
        let time = Arc::new(Time::default());
        Ok(Self(Arc::new(Inner {
            shards,
            clock: options.clock,
            by_key: Pool::new(address.for_reading_by_key(), POOL_MAX, link.clone()),
            pool: Pool::new(address.for_reading(), POOL_MAX, link.clone()),
            leases: Pool::lasting(address.for_leases(), link.clone()),
            accepts: Queue::start(accept::runner(accepting.clone(), shards, time.clone())),
            commits: committing
                .each_ref()
                .map(|writer| Queue::start(commit::runner(writer.clone(), shards, time.clone()))),
            lookups: Queue::start(lookup::runner(looking_up.clone())),
            pending: Queue::start(scan::runner(scanning.clone())),
            due: Queue::start(scan::runner(scanning.clone())),
            writers: committing
                .into_iter()
                .chain([accepting, looking_up, scanning, defining.clone(), talking.clone(), remembering.clone()])
                .collect(),
            trimmed: AtomicU64::new(0),
            defining,
            talking,
            remembering,
            seen: memories::Seen::default(),
        })))
    }
}

/// Checks everything that can be checked, migrates if asked to, and returns the number of shards.
async fn prepare(place: &str, connection: &mut PgConnection, options: &OpenOptions) -> Result<u16, OpenError> {
    let fail = |error| open_error(place.to_owned(), error);
    let place = || place.to_owned();
    let (number, found, encoding): (i32, String, String) =
        sqlx::query_as(SELECT_VERSION).fetch_one(&mut *connection).await.map_err(fail)?;
    if number < POSTGRES_MIN || encoding != "UTF8" {
        return Err(OpenError::OldPostgres { place: place(), found: format!("{found}, {encoding}") });
    }
    if options.create {
        // Newer versions are left alone; whoever else migrates now is waited for.
        let done = MIGRATIONS.migrator().run(&mut *connection).await;
        done.map_err(|error| MIGRATIONS.open_error(place(), error, fail))?;
        let shards = options.shards.unwrap_or(SHARDS_DEFAULT);
        let meta = sqlx::query(INSERT_META).bind(i32::from(shards)).bind(env!("CARGO_PKG_VERSION"));
        meta.execute(&mut *connection).await.map_err(fail)?;
        sqlx::query(INSERT_SHARDS).execute(&mut *connection).await.map_err(fail)?;
    }
    check_schema(place(), connection).await?;
    let found: Option<i32> = sqlx::query_scalar(SELECT_SHARDS).fetch_optional(&mut *connection).await.map_err(fail)?;
    let found = found.and_then(|shards| u16::try_from(shards).ok());
    let found = found.ok_or_else(|| OpenError::NotMigrated { place: place() })?;
    if let Some(wanted) = options.shards.filter(|wanted| *wanted != found) {
        return Err(OpenError::ShardCount { place: place(), found, wanted });
    }
    sqlx::query(FORGET_WORKERS).bind(WORKER_FORGOTTEN_MS).execute(connection).await.map_err(fail)?;
    Ok(found)
}

/// Whether the schema is the one that this program knows.
async fn check_schema(place: String, connection: &mut PgConnection) -> Result<(), OpenError> {
    let fail = |error| open_error(place.clone(), error);
    let has_table: bool =
        sqlx::query_scalar(HAS_TABLE).bind("_sqlx_migrations").fetch_one(&mut *connection).await.map_err(fail)?;
    if !has_table {
        return Err(OpenError::NotMigrated { place });
    }
    let applied: Vec<(i64, Vec<u8>)> = sqlx::query_as(SELECT_APPLIED).fetch_all(connection).await.map_err(fail)?;
    let (found, known) = (applied.last().map_or(0, |(version, _)| *version), MIGRATIONS.newest());
    if found > known {
        return Err(OpenError::NewerSchema { place, found, known });
    }
    if found < known {
        return Err(if found == 0 {
            OpenError::NotMigrated { place }
        } else {
            OpenError::OlderSchema { place, found, known }
        });
    }
    for (migration, (version, checksum)) in MIGRATIONS.migrator().iter().zip(&applied) {
        if migration.version != *version || *migration.checksum != checksum[..] {
            return Err(OpenError::ForeignSchema { place, version: *version });
        }
    }
    Ok(())
}

fn open_error(place: String, error: sqlx::Error) -> OpenError {
    let code = code(&error);
    let detail = error.as_database_error().map_or_else(|| error.to_string(), |error| error.message().to_owned());
    match code.as_deref() {
        Some("28000" | "28P01" | "42501") => OpenError::NotAllowed { place, detail },
        Some("3D000") => OpenError::NoDatabase { place },
        _ if is_untrusted(&error) => OpenError::Untrusted { place, detail },
        _ if is_lost(&error) => OpenError::Unreachable { place, detail },
        _ => OpenError::Refused { place, detail },
    }
}
