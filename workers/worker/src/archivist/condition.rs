//! Whether one of the archivist's duties works: logs each change once, and spaces out attempts.

use std::time::Duration;

use domain::failure::Failure;
use tokio::time::Instant;

use super::ArchivistConfig;

const BACKOFF_MIN_MS: u64 = 250;

pub struct Condition {
    duty: &'static str,
    backoff_max_ms: u64,
    failing: Option<Failing>,
}

struct Failing {
    failure: Failure,
    attempts: u32,
    not_before: Instant,
}

impl Condition {
    pub fn new(duty: &'static str, config: &ArchivistConfig) -> Self {
        Self { duty, backoff_max_ms: config.backoff_max_ms, failing: None }
    }

    pub fn works(&mut self) {
        if let Some(failing) = self.failing.take() {
            tracing::info!(duty = self.duty, attempts = failing.attempts, "works again");
        }
    }

    /// A failed attempt wrote files that are cleaned up much later, so attempts get rare.
    pub fn fails(&mut self, failure: &Failure) {
        let attempts = self.failing.as_ref().map_or(0, |failing| failing.attempts) + 1;
        let news = self.failing.as_ref().is_none_or(|failing| failing.failure != *failure);
        if news {
            tracing::error!(duty = self.duty, error = %failure, "does not work; it is tried again");
        }
        let wait = BACKOFF_MIN_MS.saturating_mul(1 << attempts.min(16)).min(self.backoff_max_ms);
        let not_before = Instant::now() + Duration::from_millis(wait);
        self.failing = Some(Failing { failure: failure.clone(), attempts, not_before });
    }

    pub fn is_well(&self) -> bool {
        self.failing.is_none()
    }

    /// Until the next attempt, if the last one failed.
    pub fn wait(&self) -> Option<Duration> {
        self.failing.as_ref().map(|failing| failing.not_before.saturating_duration_since(Instant::now()))
    }

    pub fn is_waiting(&self) -> bool {
        self.wait().is_some_and(|wait| !wait.is_zero())
    }
}
