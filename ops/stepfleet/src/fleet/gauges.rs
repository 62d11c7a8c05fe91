//! Gauges of the fleet as a whole, sampled from the stores.

use std::time::Duration;

use domain::failure::Failure;
use domain::ports::{Clock, JournalLag};
use host::tasks::Tasks;
use schemas::telemetry::metric;

use super::{Parts, Store};

/// Seldom enough to cost nothing with a million sessions.
const EVERY: Duration = Duration::from_secs(5);

/// Starts to sample.
pub fn start(parts: &Parts, tasks: &Tasks) {
    let (store, clock) = (parts.store.clone(), parts.clock.clone());
    tasks.spawn("gauges", move |stop| async move {
        let mut tick = tokio::time::interval(EVERY);
        while stop.run_until_cancelled(tick.tick()).await.is_some() {
            if let Err(error) = sample(&store, clock.as_ref()).await {
                tracing::debug!(%error, "gauges were not sampled");
            }
        }
    });
}

async fn sample(store: &Store, clock: &dyn Clock) -> Result<(), Failure> {
    let stats = store.ledger.stats().await?;
    let lag_ms = stats.oldest_ms.map_or(0, |oldest| (clock.now_ms() - oldest).max(0));
    let counts = store.sessions.count_by_status().await?;
    // Told by the journal and by every process: an archivist that cannot archive could not tell.
    let unarchived: u64 = store.journal.lag().await?.iter().map(JournalLag::rows).sum();
    let live: u64 = counts.iter().filter(|(status, _)| !status.is_at_rest()).map(|(_, count)| count).sum();
    metrics::gauge!(metric::QUEUE_DEPTH).set(stats.pending as f64);
    metrics::gauge!(metric::QUEUE_LAG_SECONDS).set(lag_ms as f64 / 1_000.0);
    metrics::gauge!(metric::JOURNAL_LAG_ROWS).set(unarchived as f64);
    metrics::gauge!(metric::SESSIONS_LIVE).set(live as f64);
    Ok(())
}
