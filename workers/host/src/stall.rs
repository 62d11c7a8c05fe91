//! What waits for the store: an outage is told once for the whole process, whatever waits, and however much.
//! What each of them met is a detail.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use domain::failure::Failure;
use domain::outage::Outage;
use schemas::telemetry::metric;

/// One log, one store: the duties of a process share this, and know nothing of each other.
static STORE: LazyLock<Stall> = LazyLock::new(Stall::new);

/// `what` cannot go on before the store takes something, or gives it; it tries again by itself.
pub fn note(what: &'static str, failure: &Failure) {
    metrics::counter!(metric::SERVICE_FAILURES, "of" => "store").increment(1);
    tracing::debug!(what, %failure, "waits for the store");
    if let Some(left_out) = STORE.see(true, STORE.begun.elapsed()) {
        tracing::warn!(what, %failure, left_out, "the store cannot be used at present; what needs it goes on trying");
    }
}

/// The store has done what something asked of it.
pub fn clear() {
    // A plain load first: this is called after every commit.
    if STORE.may_tell.load(Ordering::Relaxed)
        && let Some(left_out) = STORE.see(false, STORE.begun.elapsed())
    {
        tracing::info!(left_out, "the store can be used again");
    }
}

struct Stall {
    begun: Instant,
    outage: Mutex<Outage>,
    /// Whether a success may be worth a line.
    may_tell: AtomicBool,
}

impl Stall {
    fn new() -> Self {
        Self { begun: Instant::now(), outage: Mutex::default(), may_tell: AtomicBool::new(false) }
    }

    /// `Some`: a line is due, after so many changes that none told.
    fn see(&self, is_away: bool, now: Duration) -> Option<u64> {
        let mut outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        let line = outage.see(is_away, now);
        // Under the lock, so that it is true of the last look.
        self.may_tell.store(!outage.is_over(), Ordering::Relaxed);
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    #[test]
    fn however_many_wait_it_is_told_once() {
        let stall = Stall::new();
        for second in 0..30 {
            let lines = (0..1_000).filter(|_| stall.see(true, S(second)).is_some()).count();
            assert_eq!(lines, usize::from(second == 0), "{second}");
        }
        assert!(stall.may_tell.load(Ordering::Relaxed));
        let lines = (0..1_000).filter(|_| stall.see(false, S(30)).is_some()).count();
        assert_eq!((lines, stall.may_tell.load(Ordering::Relaxed)), (1, false));
    }

    #[test]
    fn while_some_are_served_and_others_wait_a_line_is_told_now_and_then() {
        let stall = Stall::new();
        let looks = (0..60_000_u64).map(|ms| stall.see(ms % 2 == 0, Duration::from_millis(ms)));
        assert_eq!(looks.flatten().count(), 6);
    }
}
