//! Reads of single sessions. Every session that comes into memory is read once, and when many come
//! at a time, a statement for each would cost more than what they do: so reads gather, as commits do.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use domain::failure::{Certainty, Failure};
use schemas::id::SessionKey;
use schemas::session::SessionRow;
use sqlx::PgConnection;

use super::rows::{get, session_columns, session_row};
use super::writer::{Trouble, Unit, Writer};
use crate::batch::{Batched, Running};

/// Sessions of one read: a specification may have a megabyte.
const SESSIONS_MAX: usize = 32;

const FIND: &str = concat!(
    "SELECT j.place, ",
    session_columns!(),
    " FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS j (namespace, session_id, place)
    JOIN sessions AS s ON s.namespace = j.namespace AND s.session_id = j.session_id
    JOIN session_specs AS c ON c.namespace = s.namespace AND c.session_id = s.session_id"
);

#[cfg(test)]
pub(super) const SQL: &[(&str, &str)] = &[("lookup::find", FIND)];

/// One call of `Sessions::session`.
pub(super) struct Call(pub(super) SessionKey);

impl Batched for Call {
    type Answer = Option<SessionRow>;
    type Load = usize;

    fn join(&self, load: &mut usize) -> bool {
        let fits = *load < SESSIONS_MAX;
        *load += usize::from(fits);
        fits
    }
}

/// Runs a batch of calls as one statement.
pub(super) fn runner(
    reader: Arc<Writer>,
) -> impl Fn(Arc<[Call]>, Range<usize>) -> Running<Option<SessionRow>> + Send + Sync + 'static {
    move |calls, range| {
        let reader = reader.clone();
        Box::pin(async move {
            let batch = Batch(&calls[range]);
            match reader.run(&batch).await {
                // The connection may have been lost long ago: a read is tried on a new one.
                Err(failure) if failure.retriable && failure.certainty == Certainty::DidNotHappen => {
                    reader.run(&batch).await
                }
                answered => answered,
            }
        })
    }
}

struct Batch<'b>(&'b [Call]);

#[async_trait]
impl Unit<Vec<Option<SessionRow>>> for Batch<'_> {
    async fn run(&self, connection: &mut PgConnection) -> Result<Vec<Option<SessionRow>>, Trouble> {
        let keys = self.0.iter().map(|Call(key)| (key.namespace.as_str(), key.session_id.as_str()));
        let (namespaces, sessions): (Vec<&str>, Vec<&str>) = keys.unzip();
        let rows = sqlx::query(FIND).bind(namespaces).bind(sessions).fetch_all(connection).await?;
        let mut found = vec![None; self.0.len()];
        for row in &rows {
            let place = usize::try_from(get::<i64>(row, "place")? - 1).ok();
            let slot = place.and_then(|place| found.get_mut(place));
            let slot = slot.ok_or_else(|| Failure::internal("the database answered for an unknown session"))?;
            *slot = Some(session_row(row)?);
        }
        Ok(found)
    }
}
