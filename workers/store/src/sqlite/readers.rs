//! Connections that only read, lent for one statement at a time. The library's own pool asks each one
//! whether it is well whenever it comes back, and that costs its thread as much as most statements do.
//! A connection to a file of this machine is well for as long as its thread lives, and that is asked now and then.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use domain::failure::Failure;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection, SqliteConnection};
use tokio::sync::{MappedMutexGuard, Mutex, MutexGuard, Semaphore, SemaphorePermit};
use tokio::time::Instant;

use super::failure::failure;

const SEATS: usize = 4;
/// Bound on waiting for one of them.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// One whose thread answered more recently is taken to be well.
const TRUSTED: Duration = Duration::from_secs(1);

pub(super) struct Readers {
    options: SqliteConnectOptions,
    seats: Semaphore,
    /// As many as seats: who has a seat finds one that is free. The first is used most, and is opened first.
    connections: [Mutex<Option<Opened>>; SEATS],
}

struct Opened {
    connection: SqliteConnection,
    /// When its thread was last asked.
    asked: Instant,
}

impl Opened {
    async fn open(options: &SqliteConnectOptions) -> Result<Self, sqlx::Error> {
        Ok(Self { connection: SqliteConnection::connect_with(options).await?, asked: Instant::now() })
    }

    /// Fails if its thread has ended. One that is still at work on what was given up is waited for.
    async fn is_well(&mut self) -> bool {
        if self.asked.elapsed() < TRUSTED {
            return true;
        }
        let is_well = self.connection.ping().await.is_ok();
        self.asked = Instant::now();
        is_well
    }
}

impl Readers {
    /// Opens the first one, so that what is wrong with the file is known now.
    pub(super) async fn open(options: SqliteConnectOptions) -> Result<Self, sqlx::Error> {
        let first = Opened::open(&options).await?;
        let mut connections: [Mutex<Option<Opened>>; SEATS] = Default::default();
        *connections[0].get_mut() = Some(first);
        Ok(Self { options, seats: Semaphore::new(SEATS), connections })
    }

    /// For one statement. One that is given up half way ends when its next row is due.
    pub(super) async fn lend(&self) -> Result<Reader<'_>, Failure> {
        let seat = self.seat().await?;
        let mut free = self.connections.iter().find_map(|one| one.try_lock().ok()).ok_or_else(busy)?;
        let is_well = match free.as_mut() {
            Some(opened) => opened.is_well().await,
            None => false,
        };
        if !is_well {
            *free = None;
            *free = Some(Opened::open(&self.options).await.map_err(failure)?);
        }
        let connection = MutexGuard::try_map(free, |free| free.as_mut().map(|opened| &mut opened.connection));
        let connection = connection.map_err(|_| busy())?;
        Ok(Reader { connection, _seat: seat })
    }

    async fn seat(&self) -> Result<SemaphorePermit<'_>, Failure> {
        // No timer where there is nothing to wait for.
        if let Ok(seat) = self.seats.try_acquire() {
            return Ok(seat);
        }
        let seat = tokio::time::timeout(WAIT_MAX, self.seats.acquire()).await.map_err(|_| busy())?;
        seat.map_err(|_| Failure::unavailable("the store is closed"))
    }

    /// Waits for those that are lent.
    pub(super) async fn close(&self) {
        let all = self.seats.acquire_many(SEATS as u32).await;
        self.seats.close();
        drop(all);
        for connection in &self.connections {
            let Some(opened) = connection.lock().await.take() else { continue };
            if let Err(error) = opened.connection.close().await {
                tracing::debug!(%error, "a connection did not close cleanly");
            }
        }
    }
}

fn busy() -> Failure {
    Failure::unavailable("all connections to the store are busy; try again")
}

/// A connection that comes back by itself.
pub(super) struct Reader<'r> {
    // Before its seat: who gets the seat finds it free.
    connection: MappedMutexGuard<'r, SqliteConnection>,
    _seat: SemaphorePermit<'r>,
}

impl Deref for Reader<'_> {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        &self.connection
    }
}

impl DerefMut for Reader<'_> {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        &mut self.connection
    }
}
