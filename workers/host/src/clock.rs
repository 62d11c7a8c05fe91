//! Clocks behind the domain's port.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use domain::ports::Clock;

/// Wall-clock time of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "the clock of this machine")]
    fn now_ms(&self) -> i64 {
        // A clock before 1970 reads as 1970: ids and orderings stay usable until it is set.
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
    }
}

/// The time that the processes of a fleet share: that of their database, told between two looks at
/// it by a clock that nobody can set. When a session's timer is due is decided by whichever worker
/// owns it by then; a timer set by a machine whose clock is twelve minutes ahead would be twelve
/// minutes late on any other.
#[derive(Debug)]
pub struct FleetClock {
    started: Instant,
    /// The time when it was started, as known by now.
    started_ms: AtomicI64,
}

impl FleetClock {
    /// As this machine has it, until the first [`FleetClock::shift`].
    pub fn start() -> Self {
        Self { started: Instant::now(), started_ms: AtomicI64::new(SystemClock.now_ms()) }
    }

    /// Sets it forward by so many milliseconds, or back.
    pub fn shift(&self, by_ms: i64) {
        self.started_ms.fetch_add(by_ms, Ordering::Relaxed);
    }
}

impl Clock for FleetClock {
    fn now_ms(&self) -> i64 {
        let since = i64::try_from(self.started.elapsed().as_millis()).unwrap_or(i64::MAX);
        self.started_ms.load(Ordering::Relaxed).saturating_add(since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shift_moves_the_time_by_as_much() {
        let clock = FleetClock::start();
        let before = clock.now_ms();
        assert!((before - SystemClock.now_ms()).abs() < 1_000);
        clock.shift(-720_000);
        assert!((clock.now_ms() - before + 720_000).abs() < 1_000);
    }
}
