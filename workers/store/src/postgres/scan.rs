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

use super::rows::{age, get, key};
use super::writer::{Trouble, Unit, Writer};
use crate::batch::{Batched, Running};
#[cfg(test)]
pub(super) use sql::SQL;

/// Looks of one statement.
const LOOKS_MAX: usize = 64;

/// One call of `Ledger::sessions_with_pending`.
pub(super) struct Pending {
    pub(super) shard: Shard,
    pub(super) older_than_ms: u64,
    pub(super) after: Option<(Namespace, SessionId)>,
    pub(super) limit: usize,
}

/// One call of `Sessions::due`.
pub(super) struct Due {
    pub(super) shard: Shard,
    pub(super) until_ms: i64,
    pub(super) after: Option<(i64, SessionKey)>,
    pub(super) limit: usize,
}

impl Batched for Pending {
    type Answer = Vec<SessionKey>;
    type Load = usize;

    fn join(&self, load: &mut usize) -> bool {
        one_more(load)
    }
}

impl Batched for Due {
    type Answer = Vec<(i64, SessionKey)>;
    type Load = usize;

    fn join(&self, load: &mut usize) -> bool {
        one_more(load)
    }
}

fn one_more(load: &mut usize) -> bool {
    let fits = *load < LOOKS_MAX;
    *load += usize::from(fits);
    fits
}

/// Runs a batch of calls as one statement.
pub(super) fn runner<C>(
    reader: Arc<Writer>,
) -> impl Fn(Arc<[C]>, Range<usize>) -> Running<C::Answer> + Send + Sync + 'static
where
    C: Batched,
    for<'b> Batch<'b, C>: Unit<Vec<C::Answer>>,
{
    move |calls, range| {
        let reader = reader.clone();
        Box::pin(async move { reader.run(&Batch(&calls[range])).await })
    }
}

pub(super) struct Batch<'b, C>(&'b [C]);

#[async_trait]
impl Unit<Vec<Vec<SessionKey>>> for Batch<'_, Pending> {
    async fn run(&self, connection: &mut PgConnection) -> Result<Vec<Vec<SessionKey>>, Trouble> {
        let query = sqlx::query(sql::PENDING)
            .bind(self.column(|call| i32::from(call.shard.0)))
            .bind(self.column(|call| age(call.older_than_ms)))
            .bind(self.column(|call| call.after.as_ref().map_or("", |(namespace, _)| namespace.as_str()).to_owned()))
            .bind(self.column(|call| call.after.as_ref().map_or("", |(_, session)| session.as_str()).to_owned()))
            .bind(self.column(|call| call.limit as i64));
        Ok(self.sorted(&query.fetch_all(connection).await?, key)?)
    }
}

#[async_trait]
impl Unit<Vec<Vec<(i64, SessionKey)>>> for Batch<'_, Due> {
    async fn run(&self, connection: &mut PgConnection) -> Result<Vec<Vec<(i64, SessionKey)>>, Trouble> {
        let text =
            |call: &Due, part: fn(&SessionKey) -> &str| call.after.as_ref().map_or("", |(_, key)| part(key)).to_owned();
        let query = sqlx::query(sql::DUE)
            .bind(self.column(|call| i32::from(call.shard.0)))
            .bind(self.column(|call| call.until_ms))
            .bind(self.column(|call| call.after.as_ref().map_or(i64::MIN, |(at, _)| *at)))
            .bind(self.column(|call| text(call, |key| key.namespace.as_str())))
            .bind(self.column(|call| text(call, |key| key.session_id.as_str())))
            .bind(self.column(|call| call.limit as i64));
        let due = |row: &PgRow| Ok((get(row, "wake_at_ms")?, key(row)?));
        Ok(self.sorted(&query.fetch_all(connection).await?, due)?)
    }
}

impl<C> Batch<'_, C> {
    fn column<T>(&self, of: impl Fn(&C) -> T) -> Vec<T> {
        self.0.iter().map(of).collect()
    }

    /// The rows of each call, in their order.
    fn sorted<T>(&self, rows: &[PgRow], read: impl Fn(&PgRow) -> Result<T, Failure>) -> Result<Vec<Vec<T>>, Failure> {
        let mut found: Vec<Vec<T>> = self.0.iter().map(|_| Vec::new()).collect();
        for row in rows {
            let place = usize::try_from(get::<i64>(row, "place")? - 1).ok();
            let list = place.and_then(|place| found.get_mut(place));
            list.ok_or_else(|| Failure::internal("the database answered for an unknown shard"))?.push(read(row)?);
        }
        Ok(found)
    }
}
