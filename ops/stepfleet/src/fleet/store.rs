//! The SQL store behind its ports, whichever database it is.

use std::sync::Arc;

use anyhow::{Result, bail};
use domain::failure::Failure;
use domain::ports::{
    Clock, Commits, Conversations, Definitions, Journal, Leases, Ledger, MemoryTail, Operations, Sessions, Tokens,
    TranscriptTail,
};
use host::config::{Config, Database};
use store::{OpenOptions, PostgresStore, SqliteStore, Versions};

/// Clones share connections and batches.
#[derive(Clone)]
pub struct Store {
    pub ledger: Arc<dyn Ledger>,
    pub sessions: Arc<dyn Sessions>,
    pub commits: Arc<dyn Commits>,
    pub journal: Arc<dyn Journal>,
    pub leases: Arc<dyn Leases>,
    pub tokens: Arc<dyn Tokens>,
    pub definitions: Arc<dyn Definitions>,
    pub conversations: Arc<dyn Conversations>,
    pub operations: Arc<dyn Operations>,
    /// Memories, as far as the archive does not have all of them.
    pub tail: Arc<dyn MemoryTail>,
    /// Logs of conversations, as far as the archive does not have them.
    pub transcripts: Arc<dyn TranscriptTail>,
    backend: Backend,
}

#[derive(Clone)]
enum Backend {
    Sqlite(SqliteStore),
    Postgres(PostgresStore),
}

/// What to do about the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schema {
    /// Create or bring it up to date.
    Migrate,
    /// It must be there; nothing is changed.
    Check,
}

impl Store {
    /// # Errors
    /// It cannot be opened; the text names the place and the remedy.
    pub async fn open(config: &Config, schema: Schema, clock: Arc<dyn Clock>) -> Result<Self> {
        let options = OpenOptions { shards: config.shards, create: schema == Schema::Migrate, clock };
        match &config.database {
            Database::Sqlite(path) => {
                if schema == Schema::Check && !path.is_file() {
                    bail!(
                        "there is no fleet in {}; start one with `stepfleet up`, or name its directory with --data-dir",
                        config.data_dir.display()
                    );
                }
                let store = SqliteStore::open(path, options).await?;
                Ok(Self::of(store.clone(), Backend::Sqlite(store)))
            }
            Database::Postgres(url) => {
                let store = PostgresStore::open(url.expose(), options).await?;
                Ok(Self::of(store.clone(), Backend::Postgres(store)))
            }
        }
    }

    fn of<S>(store: S, backend: Backend) -> Self
    where
        S: Ledger
            + Sessions
            + Commits
            + Journal
            + Leases
            + Tokens
            + Definitions
            + Conversations
            + Operations
            + MemoryTail
            + TranscriptTail
            + 'static,
    {
        let store = Arc::new(store);
        Self {
            ledger: store.clone(),
            sessions: store.clone(),
            commits: store.clone(),
            journal: store.clone(),
            leases: store.clone(),
            tokens: store.clone(),
            definitions: store.clone(),
            conversations: store.clone(),
            operations: store.clone(),
            tail: store.clone(),
            transcripts: store,
            backend,
        }
    }

    /// Whether the database finds its own files in order.
    ///
    /// # Errors
    /// What it found.
    pub async fn check(&self) -> Result<(), Failure> {
        match &self.backend {
            Backend::Sqlite(store) => store.quick_check().await,
            Backend::Postgres(store) => store.ping().await,
        }
    }

    /// What the store runs on.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn versions(&self) -> Result<Versions, Failure> {
        match &self.backend {
            Backend::Sqlite(store) => store.versions().await,
            Backend::Postgres(store) => store.versions().await,
        }
    }

    /// Milliseconds by which the database's clock is ahead of this machine's.
    pub async fn clock_offset_ms(&self) -> Result<i64, Failure> {
        match &self.backend {
            Backend::Sqlite(_) => Ok(0),
            Backend::Postgres(store) => store.clock_offset_ms().await,
        }
    }

    pub async fn close(&self) {
        match &self.backend {
            Backend::Sqlite(store) => store.close().await,
            Backend::Postgres(store) => store.close().await,
        }
    }
}
