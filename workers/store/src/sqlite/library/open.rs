//! Opening the library's file: as the fleet's, with a mark of its own, so that neither takes the other's.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{Connection, SqliteConnection};

use super::super::header::{Kind, LIBRARY_ID};
use super::super::open::{checked, connection_options, look, mark, open_error};
use super::super::readers::Readers;
use super::super::writer::Writer;
use super::{Inner, SqliteConversations};
use crate::migrate::Migrations;
use crate::open::OpenError;

pub(in super::super) const MIGRATIONS: Migrations =
    Migrations(&[(1, "initial", include_str!("../../../../../migrations/library/0001_initial.sql"))]);

/// How long another program that opens the file, too, is waited for: SQLite itself waits for no switch to a log.
const PATIENCE: Duration = Duration::from_secs(10);
const AGAIN: Duration = Duration::from_millis(20);

/// Whoever opens the file first migrates it; the others wait.
const BEGIN: &str = "BEGIN IMMEDIATE";

impl SqliteConversations {
    /// Opens a file, which is created or brought up to date as needed.
    ///
    /// # Errors
    /// It cannot be written, is damaged, is of another program or of a newer release: each names the
    /// file and the remedy, and nothing was changed.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let begun = Instant::now();
        loop {
            match Self::open_now(path.as_ref()).await {
                Err(OpenError::Busy { .. }) if begun.elapsed() < PATIENCE => tokio::time::sleep(AGAIN).await,
                opened => return opened,
            }
        }
    }

    async fn open_now(path: &Path) -> Result<Self, OpenError> {
        let fail = |error| open_error(path, error);
        let known = marked(path).await?;
        let mut connection = SqliteConnection::connect_with(&writing(path)).await.map_err(fail)?;
        if let Err(error) = prepare(path, &mut connection, known).await {
            // The first error is the one to report.
            let _ = connection.close().await;
            return Err(error);
        }
        let readers = Readers::open(connection_options(path).read_only(true)).await.map_err(fail)?;
        Ok(Self(Arc::new(Inner { writer: Writer::new(writing(path), connection), readers })))
    }
}

/// What the file is; a blank one gets our mark. Of programs that find it blank at the same time one is first, and the
/// others may be refused, because it writes already: but then the mark is there.
async fn marked(path: &Path) -> Result<Kind, OpenError> {
    let known = look(path, true, LIBRARY_ID)?;
    if known == Kind::Blank
        && let Err(error) = mark(path, LIBRARY_ID).await
    {
        return match look(path, true, LIBRARY_ID)? {
            Kind::Ours => Ok(Kind::Ours),
            _ => Err(open_error(path, error)),
        };
    }
    Ok(known)
}

/// Every commit waits for the disk; SQLite folds its log by itself, as a single program writes little.
fn writing(path: &Path) -> SqliteConnectOptions {
    connection_options(path).journal_mode(SqliteJournalMode::Wal).synchronous(SqliteSynchronous::Full)
}

async fn prepare(path: &Path, connection: &mut SqliteConnection, known: Kind) -> Result<(), OpenError> {
    checked(path, connection, known, &MIGRATIONS).await?;
    let fail = |error| open_error(path, error);
    let mut tx = connection.begin_with(BEGIN).await.map_err(fail)?;
    // `run` is the same for whatever connects, and its future may not be moved between threads (the documentation of
    // `sqlx::Acquire` says why): programs open their store where they like.
    let migrated = MIGRATIONS.migrator().run_direct(None, &mut *tx, false).await;
    migrated.map_err(|error| MIGRATIONS.open_error(path.display().to_string(), error, fail))?;
    tx.commit().await.map_err(fail)
}
