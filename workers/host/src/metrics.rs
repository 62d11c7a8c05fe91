//! The metrics recorder, and the help text of every metric of `schemas::telemetry::metric`.

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use schemas::telemetry::metric;

/// Upper bounds of the latency histograms, in seconds: from a fast commit to a slow model.
const SECONDS: &[f64] =
    &[0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0];
/// Upper bounds of the batch sizes.
const ROWS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0];

/// Renders what was recorded, in the Prometheus text format.
#[derive(Clone)]
pub struct Metrics(PrometheusHandle);

impl Metrics {
    /// Installs the recorder of this process and describes every metric.
    ///
    /// # Errors
    /// A recorder is installed already.
    pub fn install() -> Result<Self, BuildError> {
        let handle = PrometheusBuilder::new()
            .set_buckets(SECONDS)?
            .set_buckets_for_metric(Matcher::Full(metric::COMMIT_BATCH.into()), ROWS)?
            .install_recorder()?;
        describe();
        Ok(Self(handle))
    }

    pub fn render(&self) -> String {
        self.0.render()
    }

    /// Folds recorded samples into the histograms; to be called every few seconds, since samples
    /// pile up until then.
    pub fn upkeep(&self) {
        self.0.run_upkeep();
    }
}

fn describe() {
    use metric::*;
    let count = Unit::Count;
    describe_counter!(ACTIONS_ACCEPTED, count, "Actions accepted into the ledger");
    describe_counter!(ACTIONS_REFUSED, count, "Actions refused, by code");
    describe_counter!(ACTIONS_PROCESSED, count, "Actions that ended, by outcome");
    describe_counter!(STEPS, count, "Committed steps, by moniker and status");
    describe_counter!(COMMITS_FENCED, count, "Commits refused because the shard has another owner");
    describe_counter!(ARCHIVED_ROWS, count, "Journal rows moved to the archive");
    describe_counter!(LEASE_CHANGES, count, "Shards taken or given back");
    describe_counter!(SESSIONS_HEALED, count, "Sessions that nothing would have moved, moved by the auditor");
    describe_counter!(EMBEDDING_TOKENS, count, "Tokens that embeddings APIs were sent, by model, told or estimated");
    describe_counter!(MEMORIES_EMBEDDED, count, "Memories without a vector of the model that were given one later");
    describe_counter!(SERVICE_FAILURES, count, "What the store or the broker did not do when it was asked, by which");
    describe_counter!(INVARIANT_BROKEN, count, "Invariants found broken: anything above 0 is a defect");
    describe_gauge!(SESSIONS_LIVE, count, "Sessions that have not ended");
    describe_gauge!(SESSIONS_ACTIVE, count, "Sessions held in memory");
    describe_gauge!(
        SESSIONS_WITHOUT_CAUSE,
        count,
        "Sessions that nothing will ever move: anything above 0 is a defect"
    );
    describe_gauge!(SESSIONS_OVERDUE, count, "Sessions that should have gone on more than a minute ago");
    describe_gauge!(
        OPERATIONS_WITHOUT_EXECUTOR,
        count,
        "Operations that turns wait for, that could be begun, while no worker is known that runs operations"
    );
    describe_gauge!(QUEUE_DEPTH, count, "Accepted actions that are not processed, also those of paused sessions");
    describe_gauge!(JOURNAL_LAG_ROWS, count, "Journal rows that the archive does not have yet");
    describe_gauge!(SHARDS_OWNED, count, "Shards this process owns");
    describe_gauge!(STREAMS_OPEN, count, "Open event streams");
    let seconds = Unit::Seconds;
    describe_gauge!(QUEUE_LAG_SECONDS, seconds, "Age of the oldest action that could be processed and is not");
    describe_gauge!(
        OPERATIONS_LAG_SECONDS,
        seconds,
        "Time for which the fleet's own executors could have begun the oldest operation that waits"
    );
    describe_histogram!(ACCEPT_SECONDS, seconds, "From request to durable acceptance");
    describe_histogram!(STEP_SECONDS, seconds, "Duration of a step, without its commit");
    describe_histogram!(COMMIT_SECONDS, seconds, "Duration of a group commit");
    describe_histogram!(ARCHIVE_SECONDS, seconds, "Duration of moving one batch to the archive");
    describe_histogram!(EFFECT_SECONDS, seconds, "Duration of an effect, by kind");
    describe_histogram!(OPERATION_SECONDS, seconds, "Duration of an attempt at a tool, by outcome");
    describe_histogram!(COMMIT_BATCH, count, "Actions accepted or sessions committed in one transaction, by kind");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_recorded_is_rendered_with_its_help() {
        let metrics = Metrics::install().unwrap();
        metrics::counter!(metric::STEPS, "moniker" => "count").increment(3);
        metrics::histogram!(metric::COMMIT_SECONDS).record(0.002);
        metrics.upkeep();
        let text = metrics.render();
        assert!(text.contains("# HELP stepfleet_steps_total Committed steps"), "{text}");
        assert!(text.contains("stepfleet_steps_total{moniker=\"count\"} 3"), "{text}");
        assert!(text.contains("stepfleet_commit_seconds_bucket{le=\"0.0025\"} 1"), "{text}");
    }
}
