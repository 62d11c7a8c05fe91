//! A process of a fleet: the roles it has, wired to the adapters of its configuration. `up` has all
//! of them in one process.

mod await_services;
mod executor;
mod gauges;
mod open;
mod presence;
mod roles;
mod store;
mod time;
mod welcome;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
pub use await_services::when_ready;
use dispatcher::Front;
use domain::ports::Tokens;
use domain::tool::POOL;
pub use executor::{mcp_servers, relayed_pools};
use host::background::Background;
use host::config::Config;
use host::metrics::Metrics;
use host::tasks::Tasks;
use host::trace;
pub use open::{Parts, open_existing_archive, open_existing_store, store_may_come};
pub use roles::Roles;
use schemas::id::WorkerId;
pub use store::{Schema, Store};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use ulid::Ulid;
use worker::archivist::{Archivist, ArchivistConfig, ArchivistDeps};
use worker::executor::{Executor, Nudge, NudgingCommits};
use worker::presence::Presence;
use worker::runner::{Runner, RunnerConfig, RunnerDeps};
use worker::step_log::StepLog;

/// How long open requests and streams get at the end.
const GATEWAY_GRACE: Duration = Duration::from_secs(5);
/// How long the running steps get at the end; a step that takes longer is run again at the start.
const DRAIN_GRACE: Duration = Duration::from_secs(10);
/// How long the archivist gets for the batch at hand; what it leaves is durable in the journal.
const ARCHIVE_GRACE: Duration = Duration::from_secs(10);
/// Of the archivist: one computes while another waits for a disk.
const ARCHIVE_THREADS: usize = 2;
/// Samples of histograms pile up until they are folded.
const UPKEEP: Duration = Duration::from_secs(5);

/// How a process takes part.
pub struct Part {
    /// A restart is another worker (DESIGN 4), so the id is new each time.
    pub worker: WorkerId,
    pub roles: Roles,
    /// Whether outbound calls may go to loopback and private addresses, if the settings do not say.
    pub allow_private: bool,
    /// Where the gateway serves, or a worker's probes; nowhere if not given.
    pub listener: Option<TcpListener>,
}

impl Part {
    pub fn new(roles: Roles, allow_private: bool, listener: Option<TcpListener>) -> Self {
        Self { worker: WorkerId::from(Ulid::generate()), roles, allow_private, listener }
    }

    /// Begins to send traces under the name of this process, if the environment says where to.
    ///
    /// # Errors
    /// What is wrong with the settings of OpenTelemetry.
    pub fn trace(&self) -> Result<()> {
        let process = trace::Process {
            service: "stepfleet",
            instance: self.worker.as_str(),
            roles: &self.roles.all_names().join(","),
        };
        trace::start(&process).map_err(anyhow::Error::msg)
    }
}

/// A running process of a fleet.
pub struct Fleet {
    pub parts: Parts,
    worker: WorkerId,
    gateway: bool,
    front: Option<Front>,
    tasks: Tasks,
    runner: Option<Runner>,
    /// Of a worker without a runner.
    presence: Option<Presence>,
    executor: Option<Executor>,
    archivist: Option<Archivist>,
    /// Where the archivist runs: a batch of history computes for longer than a session may wait.
    _archiving: Option<Background>,
}

impl Fleet {
    /// Opens the stores, waiting for those that are not up yet, and starts every role. Whoever asks over
    /// HTTP is told to come again until [`Fleet::let_in`].
    ///
    /// The caller holds the data directory, if the database lies in it.
    ///
    /// # Errors
    /// A store cannot be opened; the text names the place and the remedy.
    pub async fn start(config: &Config, part: Part, metrics: Metrics, stop: &CancellationToken) -> Result<Self> {
        let allow_private = config.allow_private.unwrap_or(part.allow_private);
        let tasks = Tasks::new();
        // First, so that whoever asks is told what this process waits for.
        let mut front = part.listener.map(|listener| Front::open(listener, &tasks));
        let tell = |what: &str| front.iter().for_each(|front| front.waits_for(what));
        let parts = Parts::open(config, allow_private, stop, &tell).await?;
        if !config.database.is_shared() {
            // Whoever held a lease or a claim is gone: this process has the directory. Waiting for them
            // to run out would only delay the start.
            parts.store.leases.release_all().await.context("the leases of the run before")?;
            // So are its executors. Claims of workers of others, which are in other pools, stay theirs.
            let released = parts.store.operations.release(POOL).await.context("the claims of the run before")?;
            if released > 0 {
                tracing::info!(released, "operations of the run before are taken up again");
            }
            // Before the gateway serves: nobody else writes meanwhile.
            welcome::install(parts.store.definitions.as_ref()).await;
        }
        let (worker, roles) = (part.worker, part.roles);
        // What the runner of this process dispatches, its executor need not look for.
        let nudge = Nudge::default();
        let executor = match roles.executor {
            true => Some(executor::start(&parts, config, &worker, nudge.clone())?),
            false => None,
        };
        let runner = match roles.runner {
            true => Some(Runner::start(runner_deps(&parts, nudge), runner_config(config, &worker, roles)?)),
            false => None,
        };
        let archiving = match roles.archivist {
            true => Some(Background::start("archivist", ARCHIVE_THREADS).context("threads of the archivist")?),
            false => None,
        };
        let archivist = archiving.as_ref().map(|threads| {
            let deps = archivist_deps(&parts, &worker);
            let renews_vectors = config.embedding.as_ref().is_some_and(|embedding| embedding.renew);
            let settings = ArchivistConfig { renews_vectors, ..ArchivistConfig::default() };
            threads.within(|| Archivist::start(deps, settings))
        });
        let presence = presence::start(&parts, &worker, roles);
        if let Some(front) = &mut front {
            let deps = gateway_deps(&parts, config, metrics.clone());
            front.lead_to(if roles.gateway { dispatcher::app(deps, &tasks) } else { dispatcher::probes(deps, &tasks) });
        }
        gauges::start(&parts, &tasks);
        time::start(&parts, &tasks);
        tasks.spawn("metrics-upkeep", move |stop| upkeep(metrics, stop));
        let gateway = roles.gateway;
        if let Some(left) = runner.as_ref().filter(|_| gateway).map(Runner::left) {
            tasks.spawn("drained", move |stop| tell_of_drain(left, stop));
        }
        let _archiving = archiving;
        Ok(Self { parts, worker, gateway, front, tasks, runner, presence, executor, archivist, _archiving })
    }

    /// Serves from now on: all that a client may need is there.
    pub fn let_in(&mut self) {
        if let Some(front) = &mut self.front {
            front.let_in();
        }
    }

    pub fn tokens(&self) -> &dyn Tokens {
        self.parts.store.tokens.as_ref()
    }

    pub fn worker(&self) -> &WorkerId {
        &self.worker
    }

    /// The model provider in use, in words.
    pub fn provider(&self) -> String {
        self.parts.effects.provider()
    }

    /// The agent that is there from the first start on, if it is.
    pub async fn guide(&self) -> Option<&'static str> {
        welcome::has_guide(self.parts.store.definitions.as_ref()).await.then_some(welcome::GUIDE)
    }

    /// Cancelled once a worker was told to drain and has no shards left, if it had any: it is to stop. `None`
    /// for a process that also serves as a gateway: that goes on.
    pub fn drained(&self) -> Option<CancellationToken> {
        if self.gateway {
            return None;
        }
        let without_shards = || self.presence.as_ref().map(Presence::told);
        self.runner.as_ref().map(Runner::left).or_else(without_shards)
    }

    /// Cancelled if a task of the fleet breaks down.
    pub fn failed(&self) -> CancellationToken {
        self.tasks.failed()
    }

    /// Ends in order: no new requests, the running steps to their end, the archive, the store.
    pub async fn stop(self) {
        // Nobody counts on it from now on.
        if let Some(presence) = &self.presence {
            presence.leave();
        }
        if !self.tasks.shut_down(GATEWAY_GRACE).await {
            tracing::warn!("open requests were cut off");
        }
        // It has a grace of its own. What it could not end, somebody else runs or settles.
        if let Some(executor) = self.executor {
            executor.drain().await;
        }
        if let Some(runner) = self.runner
            && tokio::time::timeout(DRAIN_GRACE, runner.drain()).await.is_err()
        {
            tracing::warn!("running steps were cut off; they run again at the next start");
        }
        if let Some(archivist) = self.archivist
            && tokio::time::timeout(ARCHIVE_GRACE, archivist.stop()).await.is_err()
        {
            tracing::warn!("the archive was cut off; the journal keeps what it does not have");
        }
        if let Some(presence) = self.presence {
            presence.end().await;
        }
        self.parts.store.close().await;
        tracing::info!("stopped");
    }
}

/// What is a gateway, too, goes on once its worker was told to drain, and nothing moves any more.
async fn tell_of_drain(left: CancellationToken, stop: CancellationToken) {
    if stop.run_until_cancelled(left.cancelled()).await.is_some() {
        tracing::warn!("all shards are handed over by command; sessions wait until this process starts anew");
    }
}

async fn upkeep(metrics: Metrics, stop: CancellationToken) {
    let mut tick = tokio::time::interval(UPKEEP);
    while stop.run_until_cancelled(tick.tick()).await.is_some() {
        metrics.upkeep();
    }
}

fn runner_config(config: &Config, worker: &WorkerId, roles: Roles) -> Result<RunnerConfig> {
    let step_log = match &config.step_log {
        Some(path) => Some(Arc::new(StepLog::open(path).with_context(|| path.display().to_string())?)),
        None => None,
    };
    let defaults = RunnerConfig::new(worker.clone(), presence::host_name(), env!("CARGO_PKG_VERSION"));
    Ok(RunnerConfig { roles: roles.names(), step_log, ..defaults })
}

fn runner_deps(parts: &Parts, nudge: Nudge) -> RunnerDeps {
    RunnerDeps {
        ledger: parts.store.ledger.clone(),
        sessions: parts.store.sessions.clone(),
        operations: parts.store.operations.clone(),
        conversations: parts.store.conversations.clone(),
        commits: Arc::new(NudgingCommits::new(parts.store.commits.clone(), nudge)),
        journal: parts.store.journal.clone(),
        leases: parts.store.leases.clone(),
        archive: parts.archive.clone(),
        queue: parts.queue.clone(),
        effects: parts.effects.clone(),
        live: parts.live.clone(),
        clock: parts.clock.clone(),
    }
}

fn archivist_deps(parts: &Parts, worker: &WorkerId) -> ArchivistDeps {
    ArchivistDeps {
        worker: worker.clone(),
        journal: parts.store.journal.clone(),
        ledger: parts.store.ledger.clone(),
        leases: parts.store.leases.clone(),
        archive: parts.archive.clone(),
        tail: parts.store.tail.clone(),
        memories: parts.memory_archive.clone(),
        embedder: parts.embedder.clone(),
        transcripts: parts.store.transcripts.clone(),
        records: parts.records.clone(),
        clock: parts.clock.clone(),
    }
}

fn gateway_deps(parts: &Parts, config: &Config, metrics: Metrics) -> dispatcher::Deps {
    dispatcher::Deps {
        ledger: parts.store.ledger.clone(),
        sessions: parts.store.sessions.clone(),
        journal: parts.store.journal.clone(),
        leases: parts.store.leases.clone(),
        tokens: parts.store.tokens.clone(),
        definitions: parts.store.definitions.clone(),
        conversations: parts.store.conversations.clone(),
        operations: parts.store.operations.clone(),
        memories: parts.memories.clone(),
        embedder: parts.embedder.clone(),
        dead: parts.dead.clone(),
        archive: parts.archive.clone(),
        queue: parts.queue.clone(),
        live: parts.live.clone(),
        clock: parts.clock.clone(),
        effects: parts.effects.clone(),
        metrics: Arc::new(move || metrics.render()),
        config: dispatcher::Config {
            admin_token: config.token.clone(),
            mode: if config.database.is_shared() { "fleet" } else { "embedded" }.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            budgets: config.budgets.clone(),
            ..dispatcher::Config::default()
        },
    }
}
