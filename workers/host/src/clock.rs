//! The machine's clock behind the domain's port.

use std::time::{SystemTime, UNIX_EPOCH};

use domain::ports::Clock;

/// Wall-clock time of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        // A clock before 1970 reads as 1970: ids and orderings stay usable until it is set.
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
    }
}
