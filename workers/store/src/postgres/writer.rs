//! A connection that transactions have to themselves. A unit of work takes it out of its slot and
//! brings it back when it went well; after any error, and when it is dropped half way, the connection
//! goes and the database rolls back, so no later caller can meet a transaction that is not its own.
//! One that was idle while other connections broke is asked first whether it is well.

use std::sync::Arc;

use domain::failure::Failure;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};
use tokio::sync::{Mutex, MutexGuard};

use super::connect::{UNIT_MAX, connect};
use super::failure::{commit_failure, failure, is_collision, is_duplicate, is_lost};
use super::link::Link;
use super::pool::PING_MAX;

/// How often a transaction that met another one is tried.
const TRIES_MAX: usize = 5;

enum Slot {
    /// Until the first use, and after an error.
    Empty,
    /// With the losses that the link had seen before it was used last.
    Ready(Box<PgConnection>, u64),
    Closed,
}

pub(super) struct Writer {
    options: PgConnectOptions,
    link: Arc<Link>,
    slot: Mutex<Slot>,
}

/// Why a unit of work ended early.
#[derive(Debug)]
pub(super) enum Trouble {
    /// Before anything could be committed.
    Before(sqlx::Error),
    /// The statement that commits failed.
    Committing(sqlx::Error),
    /// Not the database's fault.
    Own(Failure),
    /// What had to be known before the locks is not so any more.
    Moved,
}

impl From<sqlx::Error> for Trouble {
    fn from(error: sqlx::Error) -> Self {
        Self::Before(error)
    }
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::Own(failure)
    }
}

impl Trouble {
    fn error(&self) -> Option<&sqlx::Error> {
        match self {
            Self::Before(error) | Self::Committing(error) => Some(error),
            Self::Own(_) | Self::Moved => None,
        }
    }

    /// Nothing happened, and the next try may do better.
    fn is_worth_another_try(&self) -> bool {
        matches!(self, Self::Moved) || self.error().is_some_and(|error| is_collision(error) || is_duplicate(error))
    }

    fn into_failure(self) -> Failure {
        match self {
            Self::Before(error) => failure(error),
            Self::Committing(error) => commit_failure(error),
            Self::Own(failure) => failure,
            Self::Moved => Failure::unavailable("a transaction met others again and again"),
        }
    }
}

pub(super) async fn begin(connection: &mut PgConnection) -> Result<(), Trouble> {
    sqlx::raw_sql("BEGIN").execute(connection).await?;
    Ok(())
}

pub(super) async fn commit(connection: &mut PgConnection) -> Result<(), Trouble> {
    sqlx::raw_sql("COMMIT").execute(connection).await.map_err(Trouble::Committing)?;
    Ok(())
}

/// The connection, lent to one unit of work.
struct Lent<'w> {
    slot: MutexGuard<'w, Slot>,
    connection: Box<PgConnection>,
    losses: u64,
}

impl Writer {
    pub(super) fn new(options: PgConnectOptions, link: Arc<Link>) -> Arc<Self> {
        Arc::new(Self { options, link, slot: Mutex::new(Slot::Empty) })
    }

    async fn lend(&self) -> Result<Lent<'_>, Failure> {
        let mut slot = self.slot.lock().await;
        let losses = self.link.losses();
        let known = match std::mem::replace(&mut *slot, Slot::Empty) {
            Slot::Ready(connection, seen) if seen == losses => Some(connection),
            Slot::Ready(connection, _) => answering(connection).await,
            Slot::Empty => None,
            Slot::Closed => {
                *slot = Slot::Closed;
                return Err(Failure::unavailable("the store is closed"));
            }
        };
        let connection = match known {
            Some(connection) => connection,
            None => Box::new(connect(&self.options).await.map_err(|error| {
                self.link.is_down(&error);
                failure(error)
            })?),
        };
        Ok(Lent { slot, connection, losses })
    }

    /// Runs a unit of work to its end, again if it only met another one. The caller must not be
    /// dropped half way, or it will not learn what became of it.
    pub(super) async fn run<T, U>(&self, unit: &U) -> Result<T, Failure>
    where
        U: Unit<T> + ?Sized,
    {
        let mut tries = 1;
        loop {
            let mut lent = self.lend().await?;
            let trouble = match tokio::time::timeout(UNIT_MAX, unit.run(&mut lent.connection)).await {
                Ok(Ok(value)) => {
                    self.link.is_up();
                    *lent.slot = Slot::Ready(lent.connection, lent.losses);
                    return Ok(value);
                }
                Ok(Err(trouble)) => trouble,
                Err(_) => {
                    self.link.is_down(&"no answer");
                    return Err(Failure::in_doubt("the database did not answer in time"));
                }
            };
            if trouble.is_worth_another_try() && tries < TRIES_MAX {
                tracing::debug!(?trouble, tries, "a transaction met another one");
                tries += 1;
                continue;
            }
            if let Some(error) = trouble.error().filter(|error| is_lost(error)) {
                self.link.is_down(error);
            }
            return Err(trouble.into_failure());
        }
    }

    pub(super) async fn close(&self) {
        let mut slot = self.slot.lock().await;
        if let Slot::Ready(connection, _) = std::mem::replace(&mut *slot, Slot::Closed)
            && let Err(error) = connection.close().await
        {
            tracing::debug!(%error, "a connection did not close cleanly");
        }
    }
}

/// The connection, if it still works: it was idle while others broke.
async fn answering(mut connection: Box<PgConnection>) -> Option<Box<PgConnection>> {
    let answer = tokio::time::timeout(PING_MAX, connection.ping()).await;
    answer.is_ok_and(|answer| answer.is_ok()).then_some(connection)
}

/// Work on a connection that can be done again from its start.
#[async_trait::async_trait]
pub(super) trait Unit<T>: Sync {
    async fn run(&self, connection: &mut PgConnection) -> Result<T, Trouble>;
}
