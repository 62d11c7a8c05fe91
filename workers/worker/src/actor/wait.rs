//! Waiting at a boundary: for mail, for a timer, or for nothing at all, which is to leave memory.

use std::time::Duration;

use super::{Exit, Flow, Live};

/// Longest sleep in one go, so that a jump of the wall clock is noticed.
const NAP_MS: i64 = 5_000;
/// With memory this full, idle sessions leave at once.
const CROWDED_PER_CENT: usize = 50;
const CROWDED_EVICT_MS: u64 = 50;

impl Live {
    /// Returns when there may be something to do; leaves memory after a while without.
    pub(super) async fn wait(&mut self, until_ms: Option<i64>) -> Flow {
        self.save()?;
        let nap = until_ms.map(|at| at.saturating_sub(self.context.now_ms()).clamp(0, NAP_MS).unsigned_abs());
        let evict_ms = self.evict_ms();
        let may_leave = self.in_flight.is_none()
            && !self.calls.is_open()
            && until_ms.is_none_or(|at| at - self.context.now_ms() > evict_ms as i64);
        let hand_over = self.context.hand_over.clone();
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
            () = hand_over.cancelled() => {}
            () = tokio::time::sleep(Duration::from_millis(nap.unwrap_or(u64::MAX >> 20))), if nap.is_some() => {}
            () = tokio::time::sleep(Duration::from_millis(evict_ms)), if may_leave => {
                return Err(Exit::Idle { wake_at_ms: self.session.head().wake_at_ms });
            }
        }
        Ok(())
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
