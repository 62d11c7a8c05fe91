//! Sessions that wait for the store: an outage is told once for all of them, however many there are.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use domain::failure::Failure;
use domain::outage::Outage;
use tokio::time::Instant;

/// Shared by the sessions of a worker.
pub(crate) struct Stall {
    begun: Instant,
    outage: Mutex<Outage>,
    /// Whether a commit may be worth a line.
    may_tell: AtomicBool,
}

impl Stall {
    pub fn new() -> Self {
        Self { begun: Instant::now(), outage: Mutex::default(), may_tell: AtomicBool::new(false) }
    }

    /// A session cannot go on before the store takes something, or gives it.
    pub fn note(&self, failure: &Failure) {
        if let Some(left_out) = self.see(true) {
            tracing::warn!(%failure, left_out, "sessions wait for the store; will go on trying");
        }
    }

    /// The store has taken a commit.
    pub fn clear(&self) {
        // A plain load first: this is called after every commit.
        if self.may_tell.load(Ordering::Relaxed)
            && let Some(left_out) = self.see(false)
        {
            tracing::info!(left_out, "sessions go on");
        }
    }

    /// `Some`: a line is due, after so many changes that none told.
    fn see(&self, is_away: bool) -> Option<u64> {
        let mut outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        let line = outage.see(is_away, self.begun.elapsed());
        // Under the lock, so that it is true of the last look.
        self.may_tell.store(!outage.is_over(), Ordering::Relaxed);
        line
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn however_many_sessions_wait_it_is_told_once() {
        let stall = Stall::new();
        stall.clear();
        assert!(!stall.may_tell.load(Ordering::Relaxed), "what never waited is not told");
        for second in 0..30 {
            let lines = (0..1_000).filter(|_| stall.see(true).is_some()).count();
            assert_eq!(lines, usize::from(second == 0), "{second}");
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        let lines = (0..1_000).filter(|_| stall.see(false).is_some()).count();
        assert_eq!((lines, stall.may_tell.load(Ordering::Relaxed)), (1, false));
    }
}
