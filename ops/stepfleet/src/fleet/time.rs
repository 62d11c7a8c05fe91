//! Keeps the clock of this process in step with the database's.

use std::time::Duration;

use domain::fleet_time::{Follower, Heed};
use host::tasks::Tasks;

use super::Parts;

/// Clocks of machines drift by some milliseconds in this time.
const EVERY: Duration = Duration::from_secs(10);

/// Starts to follow it, in a fleet of several processes.
pub fn start(parts: &Parts, tasks: &Tasks) {
    let Some(clock) = parts.fleet_clock.clone() else { return };
    let store = parts.store.clone();
    tasks.spawn("clock", move |stop| async move {
        let mut tick = tokio::time::interval(EVERY);
        let mut follower = Follower::default();
        while stop.run_until_cancelled(tick.tick()).await.is_some() {
            let ahead = store.clock_offset_ms().await;
            let heed = follower.heed(ahead.as_ref().ok().copied());
            if let Heed::Shift { by_ms, is_told } = heed {
                clock.shift(by_ms);
                if is_told {
                    tracing::warn!(ahead_ms = by_ms, "the database's clock was set, or this process was suspended");
                }
            }
            match ahead {
                Err(error) if heed == Heed::TellOfSilence => {
                    tracing::warn!(%error, "the database has not told its time for a while; this machine's may be off");
                }
                Err(error) => tracing::debug!(%error, "the database did not tell its time"),
                Ok(_) => {}
            }
        }
    });
}
