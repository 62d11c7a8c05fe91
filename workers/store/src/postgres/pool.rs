//! Single statements, each a transaction by itself, on shared connections. Nothing here begins a
//! transaction: a caller that goes away half way leaves nothing open behind it.
//!
//! The library's own pool asks the server whether a connection is well when it is taken, and again
//! when it comes back: two more ways to the server for each statement. Here it is asked only where
//! there is reason to.

use std::sync::Arc;
use std::time::Duration;

use domain::failure::Failure;
use futures::future::BoxFuture;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgRow};
use sqlx::query::Query;
use sqlx::{Connection, PgConnection, Postgres};
use tokio::sync::{Mutex, MutexGuard, Semaphore, SemaphorePermit};
use tokio::time::Instant;

use super::connect::{ACQUIRE_MAX, UNIT_MAX, connect};
use super::failure::{commit_failure, failure, is_collision, is_lost};
use super::link::Link;

/// A statement with its parameters.
pub(super) type Statement = Query<'static, Postgres, PgArguments>;

/// A statement under way on a connection.
type Answering<'c, T> = BoxFuture<'c, Result<T, sqlx::Error>>;

/// Connections are replaced now and then, so that a change of servers or names is noticed.
const LIFETIME_MAX: Duration = Duration::from_secs(900);
const IDLE_MAX: Duration = Duration::from_secs(120);
/// One that answered more recently is taken to be well.
const TRUSTED: Duration = Duration::from_secs(1);
/// Bound on asking one whether it is.
pub(super) const PING_MAX: Duration = Duration::from_secs(1);
/// The same, of one that lasts: others see that it is closed, so a short stall must not close it.
const LASTING_PING_MAX: Duration = Duration::from_secs(2);
/// How often a statement that met another one is tried.
const TRIES_MAX: usize = 5;

pub(super) struct Pool {
    options: PgConnectOptions,
    link: Arc<Link>,
    /// Whether connections are kept for as long as they work.
    lasts: bool,
    seats: Semaphore,
    /// As many as seats: who has a seat finds one that is free. The first are used most.
    slots: Vec<Mutex<Option<Pooled>>>,
}

struct Pooled {
    // Large, and moved about.
    connection: Box<PgConnection>,
    opened: Instant,
    used: Instant,
    /// Nothing is under way on it: what it was asked last it has answered.
    is_quiet: bool,
}

impl Pooled {
    async fn open(options: &PgConnectOptions) -> Result<Self, sqlx::Error> {
        let connection = Box::new(connect(options).await?);
        Ok(Self { connection, opened: Instant::now(), used: Instant::now(), is_quiet: true })
    }

    /// Whether it can be used. What is left of a statement that nobody waited for is read away.
    async fn is_well(&mut self, patience: Duration) -> bool {
        if self.is_quiet && self.used.elapsed() < TRUSTED {
            return true;
        }
        tokio::time::timeout(patience, self.connection.ping()).await.is_ok_and(|answer| answer.is_ok())
    }
}

/// A place for a connection, which is there once one is lent.
struct Lent<'p> {
    // Before its seat: who gets the seat finds it free.
    slot: MutexGuard<'p, Option<Pooled>>,
    _seat: SemaphorePermit<'p>,
}

impl Pool {
    /// Connects when first used.
    pub(super) fn new(options: PgConnectOptions, size: usize, link: Arc<Link>) -> Self {
        let slots = std::iter::repeat_with(Mutex::default).take(size).collect();
        Self { options, link, lasts: false, seats: Semaphore::new(size), slots }
    }

    /// One connection that stays open for as long as it works.
    pub(super) fn lasting(options: PgConnectOptions, link: Arc<Link>) -> Self {
        Self { lasts: true, ..Self::new(options, 1, link) }
    }

    #[cfg(test)]
    pub(super) fn size(&self) -> usize {
        self.slots.len()
    }

    async fn lend(&self) -> Result<Lent<'_>, Failure> {
        let seat = tokio::time::timeout(ACQUIRE_MAX, self.seats.acquire()).await.map_err(|_| busy())?;
        let seat = seat.map_err(|_| Failure::unavailable("the store is closed"))?;
        let slot = loop {
            match self.slots.iter().find_map(|slot| slot.try_lock().ok()) {
                Some(slot) => break slot,
                // Somebody looks at the one that is free, and is done at once.
                None => tokio::task::yield_now().await,
            }
        };
        self.forget_old();
        Ok(Lent { slot, _seat: seat })
    }

    /// Closes what has been open, or of no use, for too long, and what nobody waits for any more: a server
    /// that cannot send the rest of an answer keeps its locks until somebody reads it.
    fn forget_old(&self) {
        for mut slot in self.slots.iter().filter_map(|slot| slot.try_lock().ok()) {
            if slot.as_ref().is_some_and(|pooled| self.is_old(pooled) || !pooled.is_quiet) {
                *slot = None;
            }
        }
    }

    fn is_old(&self, pooled: &Pooled) -> bool {
        !self.lasts && (pooled.opened.elapsed() > LIFETIME_MAX || pooled.used.elapsed() > IDLE_MAX)
    }

    /// Within the bound. A connection that does not answer is not given to anybody else.
    async fn answer<T>(
        &self,
        ask: impl for<'c> FnOnce(&'c mut PgConnection) -> Answering<'c, T>,
    ) -> Result<Result<T, sqlx::Error>, Failure> {
        let mut lent = self.lend().await?;
        let pooled = self.well(&mut lent.slot).await?;
        pooled.is_quiet = false;
        let Ok(answer) = tokio::time::timeout(UNIT_MAX, ask(&mut pooled.connection)).await else {
            *lent.slot = None;
            self.link.is_down(&"no answer");
            return Err(Failure::in_doubt("the database did not answer in time"));
        };
        (pooled.is_quiet, pooled.used) = (true, Instant::now());
        match &answer {
            Ok(_) => self.link.is_up(),
            Err(error) if is_lost(error) => {
                *lent.slot = None;
                self.doubt();
                self.link.is_down(error);
            }
            Err(_) => {}
        }
        Ok(answer)
    }

    /// The connection of a place, opened if it has none that works.
    async fn well<'s>(&self, slot: &'s mut Option<Pooled>) -> Result<&'s mut Pooled, Failure> {
        let patience = if self.lasts { LASTING_PING_MAX } else { PING_MAX };
        let is_well = match slot {
            Some(pooled) if !self.is_old(pooled) => {
                // With an answer under way that nobody waits for, it tells nothing of others.
                let was_quiet = pooled.is_quiet;
                let is_well = pooled.is_well(patience).await;
                if was_quiet && !is_well {
                    self.link.broke();
                }
                is_well
            }
            Some(_) | None => false,
        };
        if !is_well {
            *slot = None;
            let opened = Pooled::open(&self.options).await.map_err(|error| {
                if is_lost(&error) {
                    self.link.is_down(&error);
                }
                failure(error)
            })?;
            *slot = Some(opened);
        }
        slot.as_mut().ok_or_else(busy)
    }

    /// One connection was lost: the others are asked before they are used again, or closed.
    fn doubt(&self) {
        for mut slot in self.slots.iter().filter_map(|slot| slot.try_lock().ok()) {
            if let Some(pooled) = slot.as_mut() {
                pooled.is_quiet = false;
            }
        }
    }

    /// The rows of a read.
    pub(super) async fn fetch_all(&self, query: Statement) -> Result<Vec<PgRow>, Failure> {
        let answer = self.answer(|connection| Box::pin(query.fetch_all(connection))).await?;
        answer.map_err(failure)
    }

    pub(super) async fn fetch_optional(&self, query: Statement) -> Result<Option<PgRow>, Failure> {
        let answer = self.answer(|connection| Box::pin(query.fetch_optional(connection))).await?;
        answer.map_err(failure)
    }

    pub(super) async fn fetch_one(&self, query: Statement) -> Result<PgRow, Failure> {
        let answer = self.answer(|connection| Box::pin(query.fetch_one(connection))).await?;
        answer.map_err(failure)
    }

    /// The rows that a statement which writes returns.
    pub(super) async fn write(&self, query: impl Fn() -> Statement) -> Result<Vec<PgRow>, Failure> {
        self.retried(query, |query, connection| Box::pin(query.fetch_all(connection))).await
    }

    /// How many rows a statement changed.
    pub(super) async fn execute(&self, query: impl Fn() -> Statement) -> Result<u64, Failure> {
        let done = self.retried(query, |query, connection| Box::pin(query.execute(connection))).await?;
        Ok(done.rows_affected())
    }

    async fn retried<T>(
        &self,
        query: impl Fn() -> Statement,
        run: for<'c> fn(Statement, &'c mut PgConnection) -> Answering<'c, T>,
    ) -> Result<T, Failure> {
        let mut tries = 1;
        loop {
            let query = query();
            match self.answer(|connection| run(query, connection)).await? {
                Ok(value) => return Ok(value),
                Err(error) if is_collision(&error) && tries < TRIES_MAX => tries += 1,
                Err(error) => return Err(commit_failure(error)),
            }
        }
    }

    pub(super) async fn close(&self) {
        self.seats.close();
        for slot in &self.slots {
            let Some(pooled) = slot.lock().await.take() else { continue };
            if let Err(error) = pooled.connection.close().await {
                tracing::debug!(%error, "a connection did not close cleanly");
            }
        }
    }
}

fn busy() -> Failure {
    Failure::unavailable("all connections to the database are busy; try again")
}
