//! The liveness auditor (DESIGN 1, idea 5): walks all sessions and all active turns, page by page, for those
//! that nothing will ever move, counts them, and helps them on. One per fleet, under a role lease.

mod facts;
mod heal;
mod pass;
mod suspects;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use domain::failure::Failure;
use schemas::limits::ROLE_LEASE_MS;
use schemas::telemetry::metric;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::runner::Shared;
use pass::Pass;
use suspects::Suspects;

/// Held by whoever audits.
const ROLE: &str = "auditor";
/// Pages of one look: what a look costs does not grow with the fleet.
const PAGES_PER_LOOK: usize = 8;

pub(crate) struct Auditor {
    shared: Arc<Shared>,
    pass: Pass,
    /// Whom the pass before found without a cause.
    suspects: Suspects,
    holds: bool,
    /// Whether operations wait and no worker is known that runs any, to say so once.
    lacks_executor: bool,
}

impl Auditor {
    pub fn new(shared: Arc<Shared>) -> Self {
        let (pass, suspects) = (Pass::default(), Suspects::default());
        Self { shared, pass, suspects, holds: false, lacks_executor: false }
    }

    /// Runs until told to stop.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut tick = tokio::time::interval(Duration::from_millis(self.shared.config.audit_ms));
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while stop.run_until_cancelled(tick.tick()).await.is_some() {
            if stop.run_until_cancelled(self.look()).await.is_none() {
                break;
            }
        }
        self.stand_by();
        let config = &self.shared.config;
        if let Err(failure) = self.shared.deps.leases.release_role(ROLE, &config.worker).await {
            tracing::debug!(%failure, "could not give the role back; its lease runs out by itself");
        }
    }

    async fn look(&mut self) {
        match self.try_look().await {
            Ok(()) => host::stall::clear(),
            Err(failure) => host::stall::note("the audit of sessions", &failure),
        }
    }

    async fn try_look(&mut self) -> Result<(), Failure> {
        let shared = self.shared.clone();
        let held = shared.deps.leases.hold_role(ROLE, &shared.config.worker, ROLE_LEASE_MS).await?;
        if held.is_none() {
            self.stand_by();
            return Ok(());
        }
        self.holds = true;
        for _ in 0..PAGES_PER_LOOK {
            if self.pass.page(&shared, &self.suspects).await? {
                self.finish_pass().await?;
                break;
            }
        }
        Ok(())
    }

    async fn finish_pass(&mut self) -> Result<(), Failure> {
        let overdue = self.pass.overdue_actions(&self.shared).await?;
        let pass = std::mem::take(&mut self.pass);
        metrics::gauge!(metric::SESSIONS_WITHOUT_CAUSE).set(pass.suspects.without_cause() as f64);
        metrics::gauge!(metric::SESSIONS_OVERDUE).set((pass.overdue + overdue) as f64);
        metrics::gauge!(metric::OPERATIONS_WITHOUT_EXECUTOR).set(pass.without_executor as f64);
        self.tell_executors(pass.without_executor);
        self.suspects = pass.suspects;
        Ok(())
    }

    /// That nobody runs operations is a cause, and one that somebody has to know of.
    fn tell_executors(&mut self, waiting: usize) {
        let lacked = std::mem::replace(&mut self.lacks_executor, waiting > 0);
        match (lacked, waiting) {
            (false, 1..) => tracing::warn!(
                waiting,
                "turns wait for operations, and no worker is known that runs any; start a worker with the role executor"
            ),
            (true, 0) => tracing::info!("no turn waits for an executor any more"),
            _ => {}
        }
    }

    /// Another audits: what this process saw is its own no more.
    fn stand_by(&mut self) {
        if std::mem::take(&mut self.holds) {
            self.pass = Pass::default();
            self.suspects = Suspects::default();
            self.lacks_executor = false;
            metrics::gauge!(metric::SESSIONS_WITHOUT_CAUSE).set(0.0);
            metrics::gauge!(metric::SESSIONS_OVERDUE).set(0.0);
            metrics::gauge!(metric::OPERATIONS_WITHOUT_EXECUTOR).set(0.0);
        }
    }
}
