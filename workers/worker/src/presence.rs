//! How a worker that owns no shards is known: whoever runs operations or archives, and nothing else, is listed like
//! the others, can be drained, and is missed when it is gone. A runner says all that with its leases.

use std::sync::Arc;
use std::time::Duration;

use domain::ports::Leases;
use schemas::id::WorkerId;
use schemas::limits::{LEASE_MS, LEASE_RENEW_MS};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, timeout};
use tokio_util::sync::CancellationToken;

use crate::heartbeat::Heartbeat;
use crate::lease::late;

/// Who it is that is there. Times in milliseconds.
#[derive(Debug, Clone)]
pub struct PresenceConfig {
    pub worker: WorkerId,
    pub host: String,
    pub version: String,
    /// What it does: not `runner`, or it would be counted among those who take shards.
    pub roles: Vec<String>,
    /// How often it says that it is there.
    pub beat_ms: u64,
    /// A store that takes longer to answer is away.
    pub answer_ms: u64,
}

impl PresenceConfig {
    pub fn new(worker: WorkerId, host: impl Into<String>, version: impl Into<String>, roles: Vec<String>) -> Self {
        let (beat_ms, answer_ms) = (LEASE_RENEW_MS, LEASE_MS / 2);
        Self { worker, host: host.into(), version: version.into(), roles, beat_ms, answer_ms }
    }
}

/// A worker that the others know of. Dropping it without [`Presence::end`] is what a crash would do.
pub struct Presence {
    told: CancellationToken,
    leave: CancellationToken,
    end: CancellationToken,
    task: Option<JoinHandle<()>>,
}

impl Presence {
    /// Says from now on, in the background, that it is there.
    pub fn start(leases: Arc<dyn Leases>, config: PresenceConfig) -> Self {
        let (told, leave, end) = (CancellationToken::new(), CancellationToken::new(), CancellationToken::new());
        let heartbeat = Heartbeat::new(&config.worker, &config.host, &config.version, &config.roles);
        let (tells, leaves, ends) = (told.clone(), leave.clone(), end.clone());
        let speaker = Speaker { leases, config, heartbeat, told: tells, leave: leaves, end: ends };
        Self { told, leave, end, task: Some(tokio::spawn(speaker.run())) }
    }

    /// Cancelled once somebody has told this worker to drain. It is known until its [`Presence::end`] all the same.
    pub fn told(&self) -> CancellationToken {
        self.told.clone()
    }

    /// Says that it takes nothing more from now on.
    pub fn leave(&self) {
        self.leave.cancel();
    }

    /// It has ended its work: the others forget it.
    pub async fn end(mut self) {
        self.end.cancel();
        if let Some(task) = self.task.take()
            && let Err(error) = task.await
            && error.is_panic()
        {
            tracing::error!("the heartbeat of this worker panicked");
        }
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}

/// The task behind it.
struct Speaker {
    leases: Arc<dyn Leases>,
    config: PresenceConfig,
    heartbeat: Heartbeat,
    told: CancellationToken,
    leave: CancellationToken,
    end: CancellationToken,
}

impl Speaker {
    async fn run(mut self) {
        let mut tick = tokio::time::interval(Duration::from_millis(self.config.beat_ms));
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut leaves = false;
        loop {
            tokio::select! {
                biased;
                () = self.end.cancelled() => break,
                // Said at once, so that nobody counts on it.
                () = self.leave.cancelled(), if !leaves => leaves = true,
                _ = tick.tick() => {}
            }
            self.beat(leaves).await;
        }
        self.deregister().await;
    }

    async fn beat(&mut self, leaves: bool) {
        let bound = self.answer_max();
        let beat = timeout(bound, self.heartbeat.beat(self.leases.as_ref(), leaves)).await;
        match beat.unwrap_or_else(|_| Err(late(bound))) {
            Ok(is_to_leave) => {
                host::stall::clear();
                if is_to_leave && !leaves {
                    self.told.cancel();
                }
            }
            Err(failure) => host::stall::note("heartbeats", &failure),
        }
    }

    async fn deregister(&self) {
        let bound = self.answer_max();
        let gone = timeout(bound, self.leases.deregister(&self.config.worker)).await;
        if let Err(failure) = gone.unwrap_or_else(|_| Err(late(bound))) {
            tracing::warn!(%failure, "could not deregister; the heartbeat runs out by itself");
        }
    }

    fn answer_max(&self) -> Duration {
        Duration::from_millis(self.config.answer_ms)
    }
}

#[cfg(test)]
mod tests;
