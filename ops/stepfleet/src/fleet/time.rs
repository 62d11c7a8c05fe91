//! Keeps the clock of this process in step with the database's.

use std::time::Duration;

use host::tasks::Tasks;

use super::Parts;

/// Clocks of machines drift by some milliseconds in this time.
const EVERY: Duration = Duration::from_secs(10);
/// Less is within what a look is wrong by.
const SHIFT_MIN_MS: i64 = 20;
/// Looks without an answer that an operator should know of: half a minute.
const MISSES_TOLD: u32 = 3;
/// A correction that an operator should know of.
const SHIFT_TOLD_MS: i64 = 2_000;

/// Starts to follow it, in a fleet of several processes.
pub fn start(parts: &Parts, tasks: &Tasks) {
    let Some(clock) = parts.fleet_clock.clone() else { return };
    let store = parts.store.clone();
    tasks.spawn("clock", move |stop| async move {
        let mut tick = tokio::time::interval(EVERY);
        let mut misses = 0_u32;
        while stop.run_until_cancelled(tick.tick()).await.is_some() {
            let ahead = store.clock_offset_ms().await;
            misses = if ahead.is_ok() { 0 } else { misses.saturating_add(1) };
            match ahead {
                Ok(ahead_ms) if ahead_ms.abs() >= SHIFT_MIN_MS => {
                    clock.shift(ahead_ms);
                    if ahead_ms.abs() >= SHIFT_TOLD_MS {
                        tracing::warn!(ahead_ms, "the database's clock was set, or this process was suspended");
                    }
                }
                Ok(_) => {}
                Err(error) if misses == MISSES_TOLD => {
                    tracing::warn!(%error, "the database has not told its time for a while; this machine's may be off");
                }
                Err(error) => tracing::debug!(%error, "the database did not tell its time"),
            }
        }
    });
}
