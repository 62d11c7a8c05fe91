//! What the owner of a shard looks for again and again: sessions with pending actions, and sessions
//! that are due. A worker looks through all its shards at about the same time, so looks gather into
//! one statement for many shards.

mod sql;

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use domain::failure::Failure;
use schemas::id::{Namespace, SessionId, SessionKey, Shard};
use sqlx::PgConnection;
use sqlx::postgres::PgRow;

use super::pool::Statement;
use super::rows::{age, get, key};
use super::writer::{Trouble, Unit, Writer};
use crate::batch::{Batched, Running};
#[cfg(test)]
pub(super) use sql::SQL;

/// Looks of one statement.
const LOOKS_MAX: usize = 64;

/// A look at one shard.
pub(super) trait Look: Send + Sync + Sized + 'static {
    type Found: Send + 'static;

    /// One statement for all; each row says by `place` for which look it is.
    fn statement(looks: &[Call<Self>]) -> Statement;

    fn read(row: &PgRow) -> Result<Self::Found, Failure>;
}

/// One call of `Ledger::sessions_with_pending`.
pub(super) struct Pending {
    pub(super) shard: Shard,
    pub(super) older_than_ms: u64,
    pub(super) after: Option<(Namespace, SessionId)>,
    pub(super) limit: usize,
}

impl Look for Pending {
    type Found = SessionKey;

    fn statement(looks: &[Call<Self>]) -> Statement {
        let after = looks.iter().map(|Call(look)| {
            look.after.as_ref().map_or(("", ""), |(namespace, session)| (namespace.as_str(), session.as_str()))
        });
        let (namespaces, sessions): (Vec<&str>, Vec<&str>) = after.unzip();
        sqlx::query(sql::PENDING)
            .bind(column(looks, |look| i32::from(look.shard.0)))
            .bind(column(looks, |look| age(look.older_than_ms)))
            .bind(namespaces)
            .bind(sessions)
            .bind(column(looks, |look| look.limit as i64))
    }

    fn read(row: &PgRow) -> Result<SessionKey, Failure> {
        key(row)
    }
}

/// One call of `Sessions::due`.
pub(super) struct Due {
    pub(super) shard: Shard,
    pub(super) until_ms: i64,
    pub(super) after: Option<(i64, SessionKey)>,
    pub(super) limit: usize,
}

impl Look for Due {
    type Found = (i64, SessionKey);

    fn statement(looks: &[Call<Self>]) -> Statement {
        let after = looks.iter().map(|Call(look)| {
            look.after.as_ref().map_or(("", ""), |(_, key)| (key.namespace.as_str(), key.session_id.as_str()))
        });
        let (namespaces, sessions): (Vec<&str>, Vec<&str>) = after.unzip();
        sqlx::query(sql::DUE)
            .bind(column(looks, |look| i32::from(look.shard.0)))
            .bind(column(looks, |look| look.until_ms))
            .bind(column(looks, |look| look.after.as_ref().map_or(i64::MIN, |(at, _)| *at)))
            .bind(namespaces)
            .bind(sessions)
            .bind(column(looks, |look| look.limit as i64))
    }

    fn read(row: &PgRow) -> Result<(i64, SessionKey), Failure> {
        Ok((get(row, "wake_at_ms")?, key(row)?))
    }
}

fn column<L, T>(looks: &[Call<L>], of: impl Fn(&L) -> T) -> Vec<T> {
    looks.iter().map(|Call(look)| of(look)).collect()
}

/// A look that waits for the next statement.
pub(super) struct Call<L>(pub(super) L);

impl<L: Look> Batched for Call<L> {
    type Answer = Vec<L::Found>;
    type Load = usize;

    fn join(&self, load: &mut usize) -> bool {
        let fits = *load < LOOKS_MAX;
        *load += usize::from(fits);
        fits
    }
}

type Calls<L> = Arc<[Call<L>]>;
type Found<L> = Running<Vec<<L as Look>::Found>>;

/// Runs a batch of looks as one statement.
pub(super) fn runner<L: Look>(reader: Arc<Writer>) -> impl Fn(Calls<L>, Range<usize>) -> Found<L> + Send + Sync {
    move |calls, range| {
        let reader = reader.clone();
        Box::pin(async move { reader.run(&Batch(&calls[range])).await })
    }
}

struct Batch<'b, L>(&'b [Call<L>]);

#[async_trait]
impl<L: Look> Unit<Vec<Vec<L::Found>>> for Batch<'_, L> {
    async fn run(&self, connection: &mut PgConnection) -> Result<Vec<Vec<L::Found>>, Trouble> {
        let rows = L::statement(self.0).fetch_all(connection).await?;
        let mut found: Vec<Vec<L::Found>> = self.0.iter().map(|_| Vec::new()).collect();
        for row in &rows {
            let place = usize::try_from(get::<i64>(row, "place")? - 1).ok();
            let list = place.and_then(|place| found.get_mut(place));
            let list = list.ok_or_else(|| Failure::internal("the database answered for an unknown look"))?;
            list.push(L::read(row)?);
        }
        Ok(found)
    }
}
