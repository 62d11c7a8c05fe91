//! The time of day, for records and for waits until a date.

use std::time::{SystemTime, UNIX_EPOCH};

/// Epoch milliseconds.
#[allow(clippy::disallowed_methods, reason = "the clock of the providers")]
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
