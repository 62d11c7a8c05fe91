//! How a store is opened, and every way in which that can fail: named, with the remedy.

use std::path::PathBuf;
use std::sync::Arc;

use domain::ports::Clock;
use schemas::limits::SHARDS_MAX;

/// The first release of SQLite without a data race of checkpoint and commit that could damage a file.
pub(crate) const SQLITE_MIN: (u32, u32, u32) = (3, 51, 3);

pub struct OpenOptions {
    /// The number of shards asked for. `None`: what the store has, 32 for a new one.
    pub shards: Option<u16>,
    /// Whether a missing store is created, and an older one brought up to date.
    pub create: bool,
    /// For the times of acceptance, publication and so on in a file. Leases use the database's own
    /// clock, and a server's clock serves for everything.
    pub clock: Arc<dyn Clock>,
}

/// What a store runs on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versions {
    /// Name and version of the database, as it gives it.
    pub database: String,
    pub schema: i64,
}

/// Why the store cannot be opened. Each message names the place and the remedy, and no secret.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("there is no store at {path}; create one with `stepfleet migrate`, or correct the database URL")]
    Missing { path: PathBuf },
    #[error("{path} is not a SQLite database; point the database URL to another file. Nothing was changed")]
    NotADatabase { path: PathBuf },
    #[error(
        "{path} is a SQLite database of another program (application id {application_id:#x}); \
         point the database URL to another file. Nothing was changed"
    )]
    Foreign { path: PathBuf, application_id: i64 },
    #[error("{path} is damaged: {detail}. Restore it from a copy, together with its -wal file")]
    Corrupt { path: PathBuf, detail: String },
    #[error("{place} has schema version {found}, this program knows {known}; start a newer release of the program")]
    NewerSchema { place: String, found: i64, known: i64 },
    #[error("{place} was written by a modified program (migration {version} differs); start the release that wrote it")]
    ForeignSchema { place: String, version: i64 },
    #[error(
        "{place} was created with {found} shards, not {wanted}; the number is fixed: \
         set it to {found}, or use a new data directory or database"
    )]
    ShardCount { place: String, found: u16, wanted: u16 },
    #[error("the number of shards must be from 1 to {SHARDS_MAX}, not {wanted}")]
    BadShardCount { wanted: u16 },
    #[error(
        "{path} cannot be opened for writing: {detail}. Check that its directory exists and that this user may write there"
    )]
    NotWritable { path: PathBuf, detail: String },
    #[error("the disk that holds {path} is full; free some space and start again. Nothing was lost")]
    Full { path: PathBuf },
    #[error("{path} is locked by another process; stop that process, or use another data directory")]
    Busy { path: PathBuf },
    #[error("SQLite {found} is too old; this program needs {}.{}.{} or newer", SQLITE_MIN.0, SQLITE_MIN.1, SQLITE_MIN.2)]
    OldSqlite { found: String },
    #[error("{path} cannot be opened: {detail}")]
    Other { path: PathBuf, detail: String },

    #[error("the database URL is not valid: {detail}; it should read postgres://USER:PASSWORD@HOST:PORT/DATABASE")]
    BadUrl { detail: String },
    #[error("{place} cannot be reached: {detail}; check that PostgreSQL runs there and takes connections")]
    Unreachable { place: String, detail: String },
    #[error(
        "{place} cannot be spoken to over TLS: {detail}; name the authority of its certificate with \
         sslrootcert=/path/to/ca.pem in the database URL, and the host as the certificate does"
    )]
    Untrusted { place: String, detail: String },
    #[error("{place} does not let us in: {detail}; correct user and password in the database URL")]
    NotAllowed { place: String, detail: String },
    #[error("{place} does not exist; create it with `createdb`, or correct the database URL")]
    NoDatabase { place: String },
    #[error("{place} is PostgreSQL {found}; this program needs 14 or newer, with the encoding UTF8")]
    OldPostgres { place: String, found: String },
    #[error("{place} has no store yet; create it with `stepfleet migrate`")]
    NotMigrated { place: String },
    #[error("{place} has schema version {found}, this program needs {known}; run `stepfleet migrate`")]
    OlderSchema { place: String, found: i64, known: i64 },
    #[error("{place} refuses: {detail}")]
    Refused { place: String, detail: String },
}

impl OpenError {
    /// Whether waiting may help: a service is not up yet, or not migrated yet.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::NotMigrated { .. } | Self::OlderSchema { .. })
    }
}
