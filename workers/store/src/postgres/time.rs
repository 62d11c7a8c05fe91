//! The database's time between two looks at it.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A look is good for so long: clocks do not drift by a millisecond meanwhile.
const GOOD: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(super) struct Time(Mutex<Option<(Instant, i64)>>);

impl Time {
    /// The database has said so within the transaction that has just ended. One that waited for others says too
    /// little; then what was told before stands for as long as it is good.
    pub(super) fn told(&self, now_ms: i64) {
        let mut look = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if look.and_then(passed).is_none_or(|known_ms| known_ms < now_ms) {
            *look = Some((Instant::now(), now_ms));
        }
    }

    /// Its time now; `None` if it was told too long ago.
    pub(super) fn now_ms(&self) -> Option<i64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).and_then(passed)
    }
}

/// The time now by a look that is good.
fn passed((at, now_ms): (Instant, i64)) -> Option<i64> {
    let passed = at.elapsed();
    (passed < GOOD).then(|| now_ms + passed.as_millis() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_is_late_does_not_put_the_clock_back() {
        let time = Time::default();
        assert_eq!(time.now_ms(), None);
        time.told(1_000_000);
        time.told(500_000);
        assert!(time.now_ms() >= Some(1_000_000));
        time.told(2_000_000);
        assert!(time.now_ms() >= Some(2_000_000));
    }
}
