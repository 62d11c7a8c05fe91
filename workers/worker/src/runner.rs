//! The runner role: keeps leases and runs the sessions of the shards it holds.

use std::sync::Arc;

use domain::ports::{Archive, Clock, Commits, Effects, Journal, Leases, Ledger, Live, Queue, Sessions};
use schemas::id::WorkerId;
use schemas::limits;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::lease::{LeaseClock, LeaseKeeper};
use crate::step_log::StepLog;

/// The ports of a runner.
#[derive(Clone)]
pub struct RunnerDeps {
    pub ledger: Arc<dyn Ledger>,
    pub sessions: Arc<dyn Sessions>,
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
    /// How often leases and assignment are looked at.
    pub tick_ms: u64,
    /// How many shards are given up per tick at most.
    pub moves_per_tick: usize,
    pub poll_ms: u64,
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
            tick_ms: 1_000,
            moves_per_tick: 4,
            poll_ms: limits::LEDGER_POLL_MS,
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
}

/// A running runner. Dropping it without [`Runner::drain`] is [`Runner::kill`].
pub struct Runner {
    shared: Arc<Shared>,
    stop: CancellationToken,
    keeper: Option<JoinHandle<()>>,
}

impl Runner {
    /// Starts to claim shards and to run their sessions, in the background.
    pub fn start(deps: RunnerDeps, config: RunnerConfig) -> Self {
        let live = Arc::new(Semaphore::new(config.live_sessions_max));
        let shared = Arc::new(Shared { lease: LeaseClock::new(config.lease_ms), deps, config, live });
        let stop = CancellationToken::new();
        let keeper = tokio::spawn(LeaseKeeper::new(shared.clone(), stop.clone()).run());
        Self { shared, stop, keeper: Some(keeper) }
    }

    /// Sessions in memory at present.
    pub fn live_sessions(&self) -> usize {
        self.shared.config.live_sessions_max - self.shared.live.available_permits()
    }

    /// Finishes or hands back the running steps, commits, gives all shards back, ends.
    pub async fn drain(mut self) {
        self.stop.cancel();
        if let Some(keeper) = self.keeper.take()
            && let Err(error) = keeper.await
            && error.is_panic()
        {
            tracing::error!("the lease keeper panicked during a drain");
        }
    }

    /// Ends at once, as a crash would: no commit, no hand-over.
    pub fn kill(mut self) {
        self.abort();
    }

    fn abort(&mut self) {
        if let Some(keeper) = self.keeper.take() {
            // The keeper owns the shard tasks and they own the actors: all of them end with it.
            keeper.abort();
        }
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.abort();
    }
}
