//! Retry schedules as data. Numbers are the platform's own and not configurable (SPEC W-ERR-02).

use schemas::limits::{EFFECT_MS_MAX, RETRY_AFTER_MS_MAX};

/// `attempts` in all; the n-th wait is `delays_ms[n]`, the last one repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    pub attempts: u32,
    pub delays_ms: &'static [u64],
    /// For one attempt.
    pub timeout_ms: u64,
}

/// Model calls: 3 attempts, 500 ms and 1 s between them, 120 s each (SPEC K-12).
pub const MODEL: Schedule = Schedule { attempts: 3, delays_ms: &[500, 1_000, 2_000], timeout_ms: 120_000 };
/// All attempts and the longest waits that a provider may ask for end before the effect does that they are made for.
const _: () = assert!(
    MODEL.attempts as u64 * MODEL.timeout_ms + (MODEL.attempts as u64 - 1) * RETRY_AFTER_MS_MAX < EFFECT_MS_MAX
);
/// Longest silence within a stream of a model that has begun to answer; then it is cut off. Models that think
/// without a word for longer would hardly end within their attempt.
pub const SILENCE_MS: u64 = 90_000;
const _: () = assert!(SILENCE_MS < MODEL.timeout_ms);
/// Idempotent calls of the `http` moniker.
pub const HTTP: Schedule = Schedule { attempts: 3, delays_ms: &[200, 1_000, 2_000], timeout_ms: 60_000 };
/// Writes to our own stores: for as long as it takes.
pub const STORE: Schedule =
    Schedule { attempts: u32::MAX, delays_ms: &[20, 50, 100, 250, 500, 1_000], timeout_ms: 30_000 };

impl Schedule {
    /// The wait after the given failed attempt (counted from 1); `None` = give up.
    pub fn delay_ms(&self, failed_attempt: u32) -> Option<u64> {
        if failed_attempt >= self.attempts {
            return None;
        }
        let index = (failed_attempt.saturating_sub(1) as usize).min(self.delays_ms.len() - 1);
        Some(self.delays_ms[index])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_attempts_have_two_waits() {
        assert_eq!([1, 2, 3].map(|n| MODEL.delay_ms(n)), [Some(500), Some(1_000), None]);
        assert_eq!(STORE.delay_ms(1_000), Some(1_000));
    }
}
