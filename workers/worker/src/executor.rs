//! The executor role: runs the operations that turns dispatched, and ends each with a `tool_result`.
//! Any number may run: they compete for operations by claims (DESIGN 2).

mod claim;
mod deadlines;
mod nudge;
mod record;
mod relay;
mod run;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::ports::{ActionRunner, Ledger, Operations, Queue, TaskQueue};
use schemas::id::{Namespace, OperationId, WorkerId};
use schemas::limits;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub use nudge::{Nudge, NudgingCommits};
pub use relay::Relayed;

/// The ports of an executor.
#[derive(Clone)]
pub struct ExecutorDeps {
    pub operations: Arc<dyn Operations>,
    pub runner: Arc<dyn ActionRunner>,
    /// Carries the results to the owners of their sessions.
    pub queue: Arc<dyn Queue>,
    pub ledger: Arc<dyn Ledger>,
    /// Where tasks of relayed pools go; without it, none are relayed.
    pub tasks: Option<Arc<dyn TaskQueue>>,
}

/// Settings of an executor. Times in milliseconds.
#[derive(Debug, Clone)]
pub struct ExecutorConfig {
    /// Who claims; unique among all processes.
    pub worker: WorkerId,
    pub pool: String,
    /// Pools of workers of others that are served over the broker.
    pub relayed: Vec<Relayed>,
    /// Operations that run at a time.
    pub running_max: usize,
    /// How often an idle executor looks for work.
    pub poll_ms: u64,
    /// How long a claim lasts without a word of this process.
    pub claim_ms: u64,
    /// How long a claim of a relayed task outlasts its attempt.
    pub grace_ms: u64,
    /// How often approvals and tasks are looked for whose time has come.
    pub deadline_look_ms: u64,
    /// Running attempts get this long on a drain.
    pub drain_grace_ms: u64,
    /// Longest wait between two attempts to reach a store that is away.
    pub backoff_max_ms: u64,
}

impl ExecutorConfig {
    pub fn new(worker: WorkerId) -> Self {
        Self {
            worker,
            pool: domain::tool::POOL.to_owned(),
            relayed: Vec::new(),
            running_max: limits::OPERATIONS_RUNNING_MAX,
            poll_ms: limits::OPERATION_POLL_MS,
            claim_ms: limits::OPERATION_CLAIM_MS,
            grace_ms: limits::OPERATION_GRACE_MS,
            deadline_look_ms: limits::DEADLINE_LOOK_MS,
            drain_grace_ms: limits::DESTROY_GRACE_MS,
            backoff_max_ms: 5_000,
        }
    }
}

/// What the tasks of one executor share.
struct Shared {
    deps: ExecutorDeps,
    config: ExecutorConfig,
    nudge: Nudge,
    /// What runs here. Claimed again after the store was away for longer than a claim, it only goes on.
    running: Mutex<HashSet<(Namespace, OperationId)>>,
    /// Cancelled when running attempts have had their grace.
    hurry: CancellationToken,
}

/// A running executor. Dropping it without [`Executor::drain`] is [`Executor::kill`].
pub struct Executor {
    stop: CancellationToken,
    hurry: CancellationToken,
    drain_grace: Duration,
    tasks: Vec<JoinHandle<()>>,
}

impl Executor {
    /// Starts to claim and to run operations, in the background.
    pub fn start(deps: ExecutorDeps, config: ExecutorConfig, nudge: Nudge) -> Self {
        let (stop, hurry) = (CancellationToken::new(), CancellationToken::new());
        let drain_grace = Duration::from_millis(config.drain_grace_ms);
        let shared = Arc::new(Shared { deps, config, nudge, running: Mutex::default(), hurry: hurry.clone() });
        let mut tasks = vec![
            tokio::spawn(claim::serve(Arc::clone(&shared), stop.clone())),
            tokio::spawn(deadlines::serve(Arc::clone(&shared), stop.clone())),
        ];
        if let Some(queue) = &shared.deps.tasks {
            for pool in shared.config.relayed.iter().cloned() {
                tasks.push(tokio::spawn(relay::serve(Arc::clone(&shared), Arc::clone(queue), pool, stop.clone())));
            }
        }
        Self { stop, hurry, drain_grace, tasks }
    }

    /// Claims nothing more, lets what runs come to its end, and ends. What takes longer than the grace
    /// is broken off; it is handed back where a repeat does no harm, and is in doubt otherwise.
    pub async fn drain(mut self) {
        self.stop.cancel();
        let mut tasks = std::mem::take(&mut self.tasks);
        let ended = async {
            for task in &mut tasks {
                if task.await.is_err_and(|error| error.is_panic()) {
                    tracing::error!("a task of the executor panicked during a drain");
                }
            }
        };
        tokio::pin!(ended);
        if tokio::time::timeout(self.drain_grace, &mut ended).await.is_err() {
            self.hurry.cancel();
            ended.await;
        }
    }

    /// Ends at once, as a crash would: what runs is broken off, and its claim ends by itself.
    pub fn kill(mut self) {
        self.abort();
    }

    fn abort(&mut self) {
        // The claims own the attempts: all of them end with it.
        self.tasks.drain(..).for_each(|task| task.abort());
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        self.abort();
    }
}
