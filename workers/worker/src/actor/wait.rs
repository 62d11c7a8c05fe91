//! Waiting at a boundary: for mail, for a timer, or for nothing at all, which is to leave memory.

use std::time::Duration;

use tokio::time::Instant;

use super::{Exit, Flow, Live};

/// Longest sleep in one go, so that a jump of the wall clock is noticed.
const NAP_MS: i64 = 5_000;
/// With memory this full, idle sessions leave at once.
const CROWDED_PER_CENT: usize = 50;
const CROWDED_EVICT_MS: u64 = 50;

impl Live {
    /// Returns when there may be something to do; leaves memory after a while without.
    pub(super) async fn wait(&mut self, until_ms: Option<i64>) -> Flow {
        let held_until = self.in_flight.held_until().filter(|_| self.calls.is_running());
        if held_until.is_none() {
            self.save()?;
        }
        let hand_over = self.context.hand_over.clone();
        // Over all naps: whatever happens to the session ends the wait.
        let idle_since = Instant::now();
        loop {
            let left_ms = until_ms.map(|at| at.saturating_sub(self.context.now_ms()).max(0));
            let nap = Duration::from_millis(left_ms.unwrap_or(NAP_MS).min(NAP_MS).unsigned_abs());
            let evict_ms = self.evict_ms();
            let evict = Duration::from_millis(evict_ms).saturating_sub(idle_since.elapsed());
            let may_leave =
                self.in_flight.is_none() && !self.calls.is_open() && left_ms.is_none_or(|left| left > evict_ms as i64);
            tokio::select! {
                biased;
                mail = self.mailbox.recv() => match mail {
                    Some(mail) => self.admit(mail),
                    None => {
                        self.save_all().await?;
                        return Err(Exit::HandedOver);
                    }
                },
                answer = self.in_flight.answered() => answer?,
                () = self.calls.ended() => {}
                () = tokio::time::sleep_until(held_until.unwrap_or_else(Instant::now)), if held_until.is_some() => {
                    self.save()?;
                }
                () = hand_over.cancelled() => {}
                // Before the eviction: a session whose timer has come close stays.
                () = tokio::time::sleep(nap), if left_ms.is_some() => {
                    if left_ms.is_some_and(|left| left > NAP_MS) {
                        continue;
                    }
                }
                () = tokio::time::sleep(evict), if may_leave => {
                    return Err(Exit::Idle { wake_at_ms: self.session.head().wake_at_ms });
                }
            }
            return Ok(());
        }
    }

    fn evict_ms(&self) -> u64 {
        let config = &self.context.shared.config;
        let free = self.context.shared.live.available_permits();
        if free * 100 < config.live_sessions_max * CROWDED_PER_CENT {
            config.idle_evict_ms.min(CROWDED_EVICT_MS)
        } else {
            config.idle_evict_ms
        }
    }
}
