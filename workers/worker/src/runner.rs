//! The runner role: keeps leases and runs the sessions of the shards it holds.

use std::sync::Arc;

use domain::ports::{
    Archive, Clock, Commits, Conversations, Effects, Journal, Leases, Ledger, Live, Operations, Queue, Sessions,
};
use schemas::id::WorkerId;
use schemas::limits;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::auditor::Auditor;
use crate::lease::{LeaseClock, LeaseKeeper};
use crate::step_log::StepLog;

/// The ports of a runner.
#[derive(Clone)]
pub struct RunnerDeps {
    pub ledger: Arc<dyn Ledger>,
    pub sessions: Arc<dyn Sessions>,
    pub operations: Arc<dyn Operations>,
    /// Read by the auditor alone: steps write them with their commits.
    pub conversations: Arc<dyn Conversations>,
    pub commits: Arc<dyn Commits>,
    pub journal: Arc<dyn Journal>,
    pub archive: Arc<dyn Archive>,
    pub leases: Arc<dyn Leases>,
    pub queue: Arc<dyn Queue>,
    pub effects: Arc<dyn Effects>,
    pub live: Arc<dyn Live>,
    pub clock: Arc<dyn Clock>,
}

/// Settings of a runner. Times in milliseconds.
#[derive(Clone)]
pub struct RunnerConfig {
    pub worker: WorkerId,
    pub host: String,
    pub version: String,
    pub roles: Vec<String>,
    pub lease_ms: u64,
    /// How often leases are renewed.
    pub renew_ms: u64,
    /// How often the assignment is looked at: who came, who is gone, what is free.
    pub look_ms: u64,
    /// How many shards are in hand-over at a time, at most.
    pub moves_per_look: usize,
    pub poll_ms: u64,
    /// How often the auditor looks at some more sessions.
    pub audit_ms: u64,
    pub idle_evict_ms: u64,
    pub live_sessions_max: usize,
    /// A running step gets this long on a drain.
    pub drain_grace_ms: u64,
    /// Where executions of steps are noted, if anywhere.
    pub step_log: Option<Arc<StepLog>>,
}

impl RunnerConfig {
    pub fn new(worker: WorkerId, host: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            worker,
            host: host.into(),
            version: version.into(),
            roles: vec!["runner".into(), "executor".into(), "archivist".into()],
            lease_ms: limits::LEASE_MS,
            renew_ms: limits::LEASE_RENEW_MS,
            look_ms: limits::LEASE_LOOK_MS,
            moves_per_look: 4,
            poll_ms: limits::LEDGER_POLL_MS,
            audit_ms: limits::AUDIT_MS,
            idle_evict_ms: limits::IDLE_EVICT_MS,
            live_sessions_max: limits::LIVE_SESSIONS_MAX,
            drain_grace_ms: limits::DESTROY_GRACE_MS,
            step_log: None,
        }
    }
}

/// What all tasks of one runner share.
pub(crate) struct Shared {
    pub deps: RunnerDeps,
    pub config: RunnerConfig,
    pub lease: LeaseClock,
    /// One permit per session in memory.
    pub live: Arc<Semaphore>,
    /// One permit per heavy decision that is being made.
    pub heavy: Arc<Semaphore>,
}

impl Shared {
    /// Sessions in memory at present.
    pub fn live_sessions(&self) -> usize {
        self.config.live_sessions_max - self.live.available_permits()
    }
}

/// A running runner. Dropping it without [`Runner::drain`] is [`Runner::kill`].
pub struct Runner {
    shared: Arc<Shared>,
    leave: CancellationToken,
    left: CancellationToken,
    keeper: Option<JoinHandle<()>>,
    auditor: Option<JoinHandle<()>>,
}

impl Runner {
    /// Starts to claim shards and to run their sessions, in the background.
    pub fn start(deps: RunnerDeps, config: RunnerConfig) -> Self {
        let live = Arc::new(Semaphore::new(config.live_sessions_max));
        let heavy = Arc::new(Semaphore::new(limits::HEAVY_DECISIONS_MAX));
        let lease = LeaseClock::new(config.lease_ms);
        let shared = Arc::new(Shared { deps, config, lease, live, heavy });
        let (leave, left) = (CancellationToken::new(), CancellationToken::new());
        let (keeper, end) = (LeaseKeeper::new(shared.clone(), leave.clone()), left.clone().drop_guard());
        let keeper = tokio::spawn(async move {
            keeper.run().await;
            drop(end);
        });
        let auditor = tokio::spawn(Auditor::new(shared.clone()).run(leave.clone()));
        Self { shared, leave, left, keeper: Some(keeper), auditor: Some(auditor) }
    }

    /// Sessions in memory at present.
    pub fn live_sessions(&self) -> usize {
        self.shared.live_sessions()
    }

    /// Cancelled once the runner has given all its shards back: after a drain, by this process or
    /// by an operator's command. It takes none again; the process may end.
    pub fn left(&self) -> CancellationToken {
        self.left.clone()
    }

    /// Finishes or hands back the running steps, commits, gives all shards back, ends.
    pub async fn drain(mut self) {
        self.leave.cancel();
        for task in [self.keeper.take(), self.auditor.take()].into_iter().flatten() {
            if let Err(error) = task.await
                && error.is_panic()
            {
                tracing::error!("a task of the runner panicked during a drain");
            }
        }
    }

    /// Ends at once, as a crash would: no commit, no hand-over.
    pub fn kill(mut self) {
        self.abort();
    }

    fn abort(&mut self) {
        // The keeper owns the shard tasks and they own the actors: all of them end with it.
        for task in [self.keeper.take(), self.auditor.take()].into_iter().flatten() {
            task.abort();
        }
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.abort();
    }
}
