//! The archivist's role: held by lease, so that a fleet has one archivist and another one takes over.
//!
//! The lease is for economy and quick take-over only. That nothing is archived twice does not depend
//! on it: the archive refuses commits on top of what their writer does not know.

use std::time::Duration;

use schemas::id::Epoch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::condition::Condition;
use super::reembedder::Reembedder;
use super::vigil::Vigil;
use super::{ArchivistConfig, ArchivistDeps, Loop};

/// The name of the role among the leases.
pub const ROLE: &str = "archivist";

/// Waits for the role, archives while it is held, and waits again; until `stop`.
pub async fn serve(deps: ArchivistDeps, config: ArchivistConfig, stop: CancellationToken) {
    let mut keeper = Keeper { condition: Condition::new("holding the archivist's role", &config), deps, config };
    while let Some(held) = stop.run_until_cancelled(keeper.attempt()).await {
        let Some((epoch, until)) = held else {
            if stop.run_until_cancelled(tokio::time::sleep(keeper.pause())).await.is_none() {
                break;
            }
            continue;
        };
        tracing::info!(epoch = epoch.0, "this worker is the archivist now");
        let work = Loop::new(keeper.deps.clone(), keeper.config.clone());
        let vigil = Vigil::new(keeper.deps.archive.clone(), work.turns());
        let reembedder = Reembedder::new(&keeper.deps, &keeper.config);
        tokio::select! {
            // A process that was stopped first looks whether it still holds the role.
            biased;
            () = keeper.keep(epoch, until) => {
                tracing::warn!(epoch = epoch.0, "this worker is not the archivist any more");
            }
            () = work.run(stop.clone()) => break,
            never = vigil.keep() => match never {},
            never = reembedder.keep() => match never {},
        }
    }
    keeper.release().await;
}

struct Keeper {
    deps: ArchivistDeps,
    config: ArchivistConfig,
    condition: Condition,
}

impl Keeper {
    /// Takes or extends the role. With it comes until when it is surely held, by this process's own
    /// clock: counted from before the call.
    async fn attempt(&mut self) -> Option<(Epoch, Instant)> {
        let until = Instant::now() + Duration::from_millis(self.config.lease_ms);
        match self.deps.leases.hold_role(ROLE, &self.deps.worker, self.config.lease_ms).await {
            Ok(held) => {
                self.condition.works();
                held.map(|epoch| (epoch, until))
            }
            Err(failure) => {
                self.condition.fails(&failure);
                None
            }
        }
    }

    /// Extends the role until it is lost: to another worker, or because the lease ran out without an
    /// answer. Another epoch means that somebody else had it in between.
    async fn keep(&mut self, epoch: Epoch, mut until: Instant) {
        loop {
            tokio::time::sleep(self.pause()).await;
            if Instant::now() >= until {
                return;
            }
            match tokio::time::timeout_at(until, self.attempt()).await {
                Ok(Some((same, later))) if same == epoch => until = later,
                // Not answered: it is held for as long as the lease says.
                Ok(None) if !self.condition.is_well() => {}
                _ => return,
            }
        }
    }

    /// Until the next attempt.
    fn pause(&self) -> Duration {
        let renew = Duration::from_millis(self.config.renew_ms);
        self.condition.wait().map_or(renew, |wait| wait.min(renew))
    }

    async fn release(&self) {
        if let Err(failure) = self.deps.leases.release_role(ROLE, &self.deps.worker).await {
            tracing::warn!(error = %failure, "the archivist's role was not released; its lease ends by itself");
        }
    }
}
