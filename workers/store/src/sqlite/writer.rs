//! The one connection that writes. A transaction takes the connection out of its slot and brings
//! it back when it has ended; if it is dropped half way, the connection goes with it and SQLite
//! rolls back, so no later caller can meet a transaction that is not its own.

use domain::failure::Failure;
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteConnectOptions, SqliteRow};
use sqlx::{Connection, Sqlite, SqliteConnection};
use tokio::sync::{Mutex, MutexGuard};

use super::failure::{commit_failure, failure, script_failure};

/// A statement with its parameters.
pub(super) type Statement = Query<'static, Sqlite, SqliteArguments>;

/// Never waits for readers.
pub(super) const CHECKPOINT: &str = "PRAGMA wal_checkpoint(PASSIVE)";

enum Slot {
    Ready(SqliteConnection),
    /// Lost in a transaction; the next one opens another.
    Empty,
    Closed,
}

pub(super) struct Writer {
    options: SqliteConnectOptions,
    slot: Mutex<Slot>,
}

/// An open transaction. Dropped without [`Tx::finish`], it rolls back.
pub(super) struct Tx<'w> {
    slot: MutexGuard<'w, Slot>,
    connection: SqliteConnection,
}

impl Writer {
    pub(super) fn new(options: SqliteConnectOptions, connection: SqliteConnection) -> Self {
        Self { options, slot: Mutex::new(Slot::Ready(connection)) }
    }

    /// Waits for its turn.
    async fn take(&self) -> Result<Tx<'_>, Failure> {
        let mut slot = self.slot.lock().await;
        let connection = match std::mem::replace(&mut *slot, Slot::Empty) {
            Slot::Ready(connection) => connection,
            Slot::Empty => SqliteConnection::connect_with(&self.options).await.map_err(failure)?,
            Slot::Closed => {
                *slot = Slot::Closed;
                return Err(Failure::unavailable("the store is closed"));
            }
        };
        Ok(Tx { slot, connection })
    }

    /// Opens a transaction with a script that begins with `BEGIN IMMEDIATE`; its rows come along.
    pub(super) async fn begin_with(&self, script: Statement) -> Result<(Tx<'_>, Vec<SqliteRow>), Failure> {
        let mut tx = self.take().await?;
        match script.fetch_all(tx.connection()).await {
            Ok(rows) => Ok((tx, rows)),
            Err(error) => tx.finish(Err(failure(error))).await,
        }
    }

    /// Waits for its turn, then takes the write lock of the file.
    pub(super) async fn begin(&self) -> Result<Tx<'_>, Failure> {
        let Tx { mut slot, mut connection } = self.take().await?;
        match sqlx::query("BEGIN IMMEDIATE").execute(&mut connection).await {
            Ok(_) => Ok(Tx { slot, connection }),
            Err(error) => {
                *slot = Slot::Ready(connection);
                Err(failure(error))
            }
        }
    }

    /// One statement in a transaction of its own; returns how many rows it changed.
    pub(super) async fn execute(&self, query: Statement) -> Result<u64, Failure> {
        let mut tx = self.begin().await?;
        let result = query.execute(tx.connection()).await.map_err(failure);
        tx.finish(result).await.map(|done| done.rows_affected())
    }

    /// As [`Writer::execute`], for a statement that returns rows.
    pub(super) async fn fetch(&self, query: Statement) -> Result<Vec<SqliteRow>, Failure> {
        let mut tx = self.begin().await?;
        let result = query.fetch_all(tx.connection()).await.map_err(failure);
        tx.finish(result).await
    }

    /// Folds what is left of the log into the file; nothing is written to it meanwhile.
    pub(super) async fn checkpoint(&self) -> Result<(), Failure> {
        let mut tx = self.take().await?;
        let result = sqlx::query(CHECKPOINT).execute(tx.connection()).await;
        // No transaction was opened: the connection is as good as before.
        let Tx { mut slot, connection } = tx;
        *slot = Slot::Ready(connection);
        result.map(drop).map_err(failure)
    }

    pub(super) async fn close(&self) {
        let mut slot = self.slot.lock().await;
        if let Slot::Ready(connection) = std::mem::replace(&mut *slot, Slot::Closed)
            && let Err(error) = connection.close().await
        {
            tracing::warn!(%error, "the store's file did not close cleanly");
        }
    }
}

impl Tx<'_> {
    pub(super) fn connection(&mut self) -> &mut SqliteConnection {
        &mut self.connection
    }

    /// Ends the transaction with a script that ends with `COMMIT`.
    pub(super) async fn commit_with(mut self, script: Statement) -> Result<(), Failure> {
        match script.execute(&mut self.connection).await {
            Ok(_) => {
                *self.slot = Slot::Ready(self.connection);
                Ok(())
            }
            // Which of the statements failed is not told: what could be the last one is in doubt.
            Err(error) => self.roll_back(Err(script_failure(error))).await,
        }
    }

    /// Commits what succeeded, rolls back what did not.
    pub(super) async fn finish<T>(mut self, result: Result<T, Failure>) -> Result<T, Failure> {
        let result = match result {
            Ok(value) => match sqlx::query("COMMIT").execute(&mut self.connection).await {
                Ok(_) => {
                    *self.slot = Slot::Ready(self.connection);
                    return Ok(value);
                }
                Err(error) => Err(commit_failure(error)),
            },
            Err(failure) => Err(failure),
        };
        self.roll_back(result).await
    }

    async fn roll_back<T>(mut self, result: Result<T, Failure>) -> Result<T, Failure> {
        // After some errors SQLite has rolled back by itself, and this statement finds nothing to
        // do. Any other error here means that the connection is of no more use: drop it.
        match sqlx::query("ROLLBACK").execute(&mut self.connection).await {
            Ok(_) => *self.slot = Slot::Ready(self.connection),
            Err(error) if is_rolled_back(&error) => *self.slot = Slot::Ready(self.connection),
            Err(error) => tracing::warn!(%error, "a connection to the store is given up"),
        }
        result
    }
}

fn is_rolled_back(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|error| error.message().contains("no transaction is active"))
}
