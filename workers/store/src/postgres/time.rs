//! The database's time between two looks at it.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A look is good for so long: clocks do not drift by a millisecond meanwhile.
const GOOD: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(super) struct Time(Mutex<Option<(Instant, i64)>>);

impl Time {
    /// The database has just said so.
    pub(super) fn told(&self, now_ms: i64) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), now_ms));
    }

    /// Its time now; `None` if it was told too long ago.
    pub(super) fn now_ms(&self) -> Option<i64> {
        let (at, now_ms) = (*self.0.lock().unwrap_or_else(PoisonError::into_inner))?;
        let passed = at.elapsed();
        (passed < GOOD).then(|| now_ms + passed.as_millis() as i64)
    }
}
