//! How long to wait before the next attempt: longer each time, up to a bound, and never all at once.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use domain::retry::Schedule;

const RECONNECT: Schedule =
    Schedule { attempts: u32::MAX, delays_ms: &[100, 250, 500, 1_000, 2_000, 5_000], timeout_ms: 10_000 };

/// The wait after the n-th failure in a row, counted from 1: half of it fixed, half by chance, so
/// that a restarted broker is not met by everybody at once.
pub(super) fn after(failures: u32) -> Duration {
    let full = RECONNECT.delay_ms(failures).unwrap_or(5_000);
    // Each state is keyed anew: enough chance for a jitter.
    let chance = RandomState::new().build_hasher().finish();
    Duration::from_millis(full / 2 + chance % (full / 2 + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_bound() {
        for (failures, most) in [(1, 100), (3, 500), (6, 5_000), (1_000_000, 5_000)] {
            let wait = after(failures).as_millis();
            assert!((most / 2..=most).contains(&wait), "{failures}: {wait}");
        }
    }
}
