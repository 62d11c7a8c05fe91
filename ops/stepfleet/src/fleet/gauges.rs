//! Gauges of the fleet as a whole, sampled from the stores.

use std::time::Duration;

use domain::failure::Failure;
use domain::ports::{Clock, JournalLag};
use domain::tool::POOL;
use host::tasks::Tasks;
use schemas::telemetry::metric;
use tokio::time::MissedTickBehavior;

use super::{Parts, Store};

/// Seldom enough to cost nothing with a million sessions.
const EVERY: Duration = Duration::from_secs(5);
/// A store that takes longer tells nothing of now.
const PATIENCE: Duration = Duration::from_secs(10);

/// Starts to sample.
pub fn start(parts: &Parts, tasks: &Tasks) {
    let (store, clock) = (parts.store.clone(), parts.clock.clone());
    tasks.spawn("gauges", move |stop| async move {
        let mut tick = tokio::time::interval(EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while stop.run_until_cancelled(tick.tick()).await.is_some() {
            in_time(read(&store, clock.as_ref())).await.show();
        }
    });
}

/// What is shown.
#[derive(Debug, Clone, Copy)]
struct Sample {
    queue_depth: f64,
    queue_lag_s: f64,
    operations_lag_s: f64,
    unarchived: f64,
    live: f64,
}

impl Sample {
    /// No numbers: of a process that is cut off, the last ones that it saw would count for ever, and fleets are scaled
    /// by the greatest that any process shows.
    const UNKNOWN: Self = Self {
        queue_depth: f64::NAN,
        queue_lag_s: f64::NAN,
        operations_lag_s: f64::NAN,
        unarchived: f64::NAN,
        live: f64::NAN,
    };

    fn show(self) {
        metrics::gauge!(metric::QUEUE_DEPTH).set(self.queue_depth);
        metrics::gauge!(metric::QUEUE_LAG_SECONDS).set(self.queue_lag_s);
        metrics::gauge!(metric::OPERATIONS_LAG_SECONDS).set(self.operations_lag_s);
        metrics::gauge!(metric::JOURNAL_LAG_ROWS).set(self.unarchived);
        metrics::gauge!(metric::SESSIONS_LIVE).set(self.live);
    }
}

/// What was read, if it could be.
async fn in_time(read: impl Future<Output = Result<Sample, Failure>>) -> Sample {
    let late = |_| Err(Failure::unavailable("no answer in time"));
    tokio::time::timeout(PATIENCE, read).await.unwrap_or_else(late).unwrap_or_else(|failure| {
        tracing::debug!(%failure, "gauges were not sampled");
        Sample::UNKNOWN
    })
}

async fn read(store: &Store, clock: &dyn Clock) -> Result<Sample, Failure> {
    let stats = store.ledger.stats().await?;
    let lag_ms = stats.oldest_ms.map_or(0, |oldest| (clock.now_ms() - oldest).max(0));
    // Of the pool that our own executors serve: with more of them, it would wait for less.
    let waiting_ms = store.operations.waiting_ms(POOL).await?.unwrap_or(0);
    let counts = store.sessions.count_by_status().await?;
    // Told by the journal and by every process: an archivist that cannot archive could not tell.
    let unarchived: u64 = store.journal.lag().await?.iter().map(JournalLag::rows).sum();
    let live: u64 = counts.iter().filter(|(status, _)| !status.is_at_rest()).map(|(_, count)| count).sum();
    Ok(Sample {
        queue_depth: stats.pending as f64,
        queue_lag_s: lag_ms as f64 / 1_000.0,
        operations_lag_s: waiting_ms as f64 / 1_000.0,
        unarchived: unarchived as f64,
        live: live as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(sample: Sample) -> [f64; 5] {
        let Sample { queue_depth, queue_lag_s, operations_lag_s, unarchived, live } = sample;
        [queue_depth, queue_lag_s, operations_lag_s, unarchived, live]
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_fails_or_is_silent_leaves_no_figure_behind() {
        let seen = Sample { queue_depth: 1.0, queue_lag_s: 2.0, operations_lag_s: 3.0, unarchived: 4.0, live: 5.0 };
        assert_eq!(figures(in_time(async { Ok(seen) }).await), [1.0, 2.0, 3.0, 4.0, 5.0]);
        let away = in_time(async { Err(Failure::unavailable("cut off")) }).await;
        let silent = in_time(std::future::pending()).await;
        for unknown in [away, silent] {
            assert!(figures(unknown).iter().all(|figure| figure.is_nan()), "{unknown:?}");
        }
    }
}
