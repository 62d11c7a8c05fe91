//! Time and ids: parameters, so that a test can repeat itself.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use domain::ports::Clock;
use ulid::Ulid;

/// Wall-clock time of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "this is the clock of programs that bring none")]
    fn now_ms(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }
}

/// Makes ids of conversations, turns, messages and calls, each once.
pub trait Ids: Send + Sync {
    /// `now_ms`: epoch milliseconds.
    fn next(&self, now_ms: i64) -> Ulid;
}

/// Random ULIDs of the time given.
#[derive(Debug, Clone, Copy, Default)]
pub struct UlidIds;

impl Ids for UlidIds {
    fn next(&self, now_ms: i64) -> Ulid {
        let since_epoch = Duration::from_millis(u64::try_from(now_ms).unwrap_or(0));
        Ulid::from_datetime(UNIX_EPOCH + since_epoch)
    }
}
