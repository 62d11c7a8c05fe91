//! Whether one of the archivist's duties works: logs each change once, whatever the errors say, and spaces
//! out attempts.

use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use domain::failure::Failure;
use domain::outage::{Outage, Seldom};
use tokio::time::Instant;

use super::ArchivistConfig;

const BACKOFF_MIN_MS: u64 = 250;

/// Of all duties of a process.
static TOLD: LazyLock<(std::time::Instant, Mutex<Seldom>)> =
    LazyLock::new(|| (std::time::Instant::now(), Mutex::default()));

pub struct Condition {
    duty: &'static str,
    backoff_max_ms: u64,
    failing: Option<Failing>,
    outage: Outage,
    begun: Instant,
    /// Attempts that failed since the last line that said that it works.
    failed: u32,
    /// Among them was one that a person must mend.
    is_told_to_mend: bool,
}

struct Failing {
    attempts: u32,
    not_before: Instant,
}

impl Condition {
    pub fn new(duty: &'static str, config: &ArchivistConfig) -> Self {
        let (outage, begun) = (Outage::default(), Instant::now());
        let backoff_max_ms = config.backoff_max_ms;
        Self { duty, backoff_max_ms, failing: None, outage, begun, failed: 0, is_told_to_mend: false }
    }

    pub fn works(&mut self) {
        self.failing = None;
        if let Some(left_out) = self.outage.see(false, self.begun.elapsed()) {
            tracing::info!(duty = self.duty, attempts = self.failed, left_out, "works again");
            (self.failed, self.is_told_to_mend) = (0, false);
        }
    }

    /// A failed attempt wrote files that are cleaned up much later, so attempts get rare.
    pub fn fails(&mut self, failure: &Failure) {
        let attempts = self.failing.as_ref().map_or(0, |failing| failing.attempts) + 1;
        if let Some(left_out) = self.news(failure) {
            self.tell(failure, left_out);
        }
        let wait = BACKOFF_MIN_MS.saturating_mul(1 << attempts.min(16)).min(self.backoff_max_ms);
        let not_before = Instant::now() + Duration::from_millis(wait);
        self.failing = Some(Failing { attempts, not_before });
    }

    /// The duties need the same services, so what goes by itself is told of one of them.
    fn tell(&self, failure: &Failure, left_out: u64) {
        if !failure.retriable {
            tracing::error!(duty = self.duty, error = %failure, left_out, "does not work; it is tried again");
            return;
        }
        let (begun, told) = &*TOLD;
        match told.lock().unwrap_or_else(PoisonError::into_inner).see(begun.elapsed()) {
            Some(others) => {
                tracing::warn!(duty = self.duty, error = %failure, left_out, others, "does not work; it is tried again");
            }
            None => tracing::debug!(duty = self.duty, error = %failure, left_out, "does not work; it is tried again"),
        }
    }

    /// `Some`: a line is due, after so many changes that none told. That a person must mend it is news even
    /// if it did not work before, once.
    fn news(&mut self, failure: &Failure) -> Option<u64> {
        self.failed = self.failed.saturating_add(1);
        let line = self.outage.see(true, self.begun.elapsed());
        let is_worse = !failure.retriable && !std::mem::replace(&mut self.is_told_to_mend, true);
        line.or(is_worse.then_some(0))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn another_text_is_no_other_trouble() {
        let mut condition = Condition::new("testing", &ArchivistConfig::default());
        let mut lines = |failure: fn(String) -> Failure| {
            (0..20).filter(|n| condition.news(&failure(format!("error {n}"))).is_some()).count()
        };
        assert_eq!(lines(Failure::unavailable), 1);
        assert_eq!(lines(Failure::internal), 1, "that a person must mend it is news, once");
        assert_eq!(lines(Failure::unavailable), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_trouble_that_comes_again_is_told_again() {
        let mut condition = Condition::new("testing", &ArchivistConfig::default());
        for _ in 0..3 {
            assert_eq!(condition.news(&Failure::internal("gone")), Some(0));
            tokio::time::advance(Duration::from_secs(10)).await;
            condition.works();
            assert_eq!((condition.failed, condition.is_told_to_mend), (0, false), "its end was told");
            tokio::time::advance(Duration::from_secs(10)).await;
        }
    }
}
