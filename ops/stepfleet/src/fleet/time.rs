//! Keeps the clock of this process in step with the database's.

use std::time::Duration;

use host::tasks::Tasks;

use super::Parts;

/// Clocks of machines drift by some milliseconds in this time.
const EVERY: Duration = Duration::from_secs(10);
/// Less is within what a look is wrong by.
const SHIFT_MIN_MS: i64 = 20;
/// A correction that an operator should know of.
const SHIFT_TOLD_MS: i64 = 2_000;

/// Starts to follow it, in a fleet of several processes.
pub fn start(parts: &Parts, tasks: &Tasks) {
    let Some(clock) = parts.fleet_clock.clone() else { return };
    let store = parts.store.clone();
    tasks.spawn("clock", move |stop| async move {
        let mut tick = tokio::time::interval(EVERY);
        while stop.run_until_cancelled(tick.tick()).await.is_some() {
            match store.clock_offset_ms().await {
                Ok(ahead_ms) if ahead_ms.abs() >= SHIFT_MIN_MS => {
                    clock.shift(ahead_ms);
                    if ahead_ms.abs() >= SHIFT_TOLD_MS {
                        tracing::warn!(ahead_ms, "the database's clock was set, or this process was suspended");
                    }
                }
                Ok(_) => {}
                Err(error) => tracing::debug!(%error, "the database did not tell its time"),
            }
        }
    });
}
