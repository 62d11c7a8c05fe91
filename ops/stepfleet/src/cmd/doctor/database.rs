//! The database: sound, of which version, and what waits in it.

use std::time::Instant;

use domain::failure::Failure;
use domain::ports::{Clock, JournalLag};
use host::clock::SystemClock;
use store::Versions;

use super::report::{Check, Report};
use crate::fleet::Store;

/// The archivist writes every second, another takes over within 13 s from one that died, and an archive
/// that refuses is tried again within 30 s: what has waited for longer will not go by itself, or the archive
/// does not keep up with the load.
const JOURNAL_AGE_MS_MAX: i64 = 60_000;

/// `is_served`: whether there should be somebody who works on it.
pub async fn look(store: &Store, is_served: bool, report: &mut Report) {
    report.note("database", soundness(store).await);
    // The rows bear the database's time.
    let now_ms = SystemClock.now_ms() + store.clock_offset_ms().await.unwrap_or(0);
    report.note("queue", queue(store, now_ms).await);
    report.note("journal", journal(store, now_ms, is_served).await);
}

async fn soundness(store: &Store) -> Result<Check, Failure> {
    let started = Instant::now();
    store.check().await?;
    let took = started.elapsed().as_millis();
    let Versions { database, schema } = store.versions().await?;
    Ok(Check::new("database", true, format!("{database}, schema version {schema}; sound, {took} ms")))
}

async fn queue(store: &Store, now_ms: i64) -> Result<Check, Failure> {
    let stats = store.ledger.stats().await?;
    let oldest = stats.oldest_ms.map_or(0, |oldest| (now_ms - oldest).max(0));
    Ok(Check::new("queue", true, format!("{} actions wait, the oldest that is due {oldest} ms", stats.pending)))
}

async fn journal(store: &Store, now_ms: i64, is_served: bool) -> Result<Check, Failure> {
    let lags = store.journal.lag().await?;
    let mut age_ms = 0_i64;
    for lag in lags.iter().filter(|lag| lag.rows() > 0) {
        // The next one to be archived; none, if that happens meanwhile.
        if let Some(row) = store.journal.above(lag.shard, lag.archived_seq, 1, 1).await?.first() {
            age_ms = age_ms.max(now_ms - row.committed_at_ms);
        }
    }
    Ok(lagging(lags.iter().map(JournalLag::rows).sum(), age_ms, is_served))
}

fn lagging(rows: u64, age_ms: i64, is_served: bool) -> Check {
    let detail = format!("{rows} rows wait for the archive, the oldest {age_ms} ms");
    if !is_served || age_ms <= JOURNAL_AGE_MS_MAX {
        return Check::new("journal", true, detail);
    }
    let remedy = "the log of the worker that is archivist says why; if there is none, see roles";
    Check::new("journal", false, format!("{detail}; {remedy}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_wait_for_too_long_are_unwell_if_somebody_should_move_them() {
        assert!(lagging(0, 0, true).well);
        assert!(lagging(1_000_000, JOURNAL_AGE_MS_MAX, true).well, "many rows are no harm while they move");
        let late = lagging(1, JOURNAL_AGE_MS_MAX + 1, true);
        assert!(!late.well && late.detail.contains("60001 ms") && late.detail.contains("archivist"), "{late:?}");
        assert!(lagging(1, i64::MAX, false).well, "a fleet that does not run archives nothing");
    }
}
