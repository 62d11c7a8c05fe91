//! Single statements, each a transaction by itself, on shared connections. Nothing here begins a
//! transaction: a caller that goes away half way leaves nothing open behind it.

use std::sync::Arc;
use std::time::Duration;

use domain::failure::Failure;
use futures::future::BoxFuture;
use sqlx::Postgres;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgPool, PgPoolOptions, PgRow};
use sqlx::query::Query;

use super::connect::{ACQUIRE_MAX, UNIT_MAX};
use super::failure::{commit_failure, failure, is_collision, is_lost};
use super::link::Link;

/// A statement with its parameters.
pub(super) type Statement = Query<'static, Postgres, PgArguments>;

/// A statement under way on a connection.
type Answering<'c, T> = BoxFuture<'c, Result<T, sqlx::Error>>;

/// Connections are replaced now and then, so that a change of servers or names is noticed.
const LIFETIME_MAX: Duration = Duration::from_secs(900);
const IDLE_MAX: Duration = Duration::from_secs(120);
/// How often a statement that met another one is tried.
const TRIES_MAX: usize = 5;

pub(super) struct Pool {
    pool: PgPool,
    link: Arc<Link>,
}

impl Pool {
    /// Connects when first used.
    pub(super) fn new(options: PgConnectOptions, size: u32, link: Arc<Link>) -> Self {
        let sized = PgPoolOptions::new().max_connections(size).max_lifetime(LIFETIME_MAX).idle_timeout(IDLE_MAX);
        Self { pool: sized.acquire_timeout(ACQUIRE_MAX).connect_lazy_with(options), link }
    }

    /// One connection that stays open for as long as it works.
    pub(super) fn lasting(options: PgConnectOptions, link: Arc<Link>) -> Self {
        let one = PgPoolOptions::new().max_connections(1).max_lifetime(None).idle_timeout(None);
        Self { pool: one.acquire_timeout(ACQUIRE_MAX).connect_lazy_with(options), link }
    }

    async fn acquire(&self) -> Result<PoolConnection<Postgres>, Failure> {
        self.pool.acquire().await.map_err(|error| {
            if is_lost(&error) {
                self.link.is_down(&error);
            }
            failure(error)
        })
    }

    /// Within the bound. A connection that does not answer is not given to anybody else.
    async fn answer<T>(
        &self,
        ask: impl for<'c> FnOnce(&'c mut PoolConnection<Postgres>) -> Answering<'c, T>,
    ) -> Result<Result<T, sqlx::Error>, Failure> {
        let mut connection = self.acquire().await?;
        let Ok(answer) = tokio::time::timeout(UNIT_MAX, ask(&mut connection)).await else {
            drop(connection.detach());
            self.link.is_down(&"no answer");
            return Err(Failure::in_doubt("the database did not answer in time"));
        };
        match &answer {
            Ok(_) => self.link.is_up(),
            Err(error) if is_lost(error) => self.link.is_down(error),
            Err(_) => {}
        }
        Ok(answer)
    }

    /// The rows of a read.
    pub(super) async fn fetch_all(&self, query: Statement) -> Result<Vec<PgRow>, Failure> {
        let answer = self.answer(|connection| Box::pin(query.fetch_all(&mut **connection))).await?;
        answer.map_err(failure)
    }

    pub(super) async fn fetch_optional(&self, query: Statement) -> Result<Option<PgRow>, Failure> {
        let answer = self.answer(|connection| Box::pin(query.fetch_optional(&mut **connection))).await?;
        answer.map_err(failure)
    }

    pub(super) async fn fetch_one(&self, query: Statement) -> Result<PgRow, Failure> {
        let answer = self.answer(|connection| Box::pin(query.fetch_one(&mut **connection))).await?;
        answer.map_err(failure)
    }

    /// The rows that a statement which writes returns.
    pub(super) async fn write(&self, query: impl Fn() -> Statement) -> Result<Vec<PgRow>, Failure> {
        self.retried(query, |query, connection| Box::pin(query.fetch_all(&mut **connection))).await
    }

    /// How many rows a statement changed.
    pub(super) async fn execute(&self, query: impl Fn() -> Statement) -> Result<u64, Failure> {
        let done = self.retried(query, |query, connection| Box::pin(query.execute(&mut **connection))).await?;
        Ok(done.rows_affected())
    }

    async fn retried<T>(
        &self,
        query: impl Fn() -> Statement,
        run: for<'c> fn(Statement, &'c mut PoolConnection<Postgres>) -> Answering<'c, T>,
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
        self.pool.close().await;
    }
}
