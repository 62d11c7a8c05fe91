//! The embedded fleet: every role wired to the adapters of one machine, in one process.

mod gauges;
mod open;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use domain::ports::{Leases, Tokens};
use host::config::Config;
use host::metrics::Metrics;
use host::tasks::Tasks;
pub use open::{Parts, open_existing_archive, open_existing_store};
use schemas::id::WorkerId;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use ulid::Ulid;
use worker::archivist::{Archivist, ArchivistConfig, ArchivistDeps};
use worker::runner::{Runner, RunnerConfig, RunnerDeps};

/// How long open requests and streams get at the end.
const GATEWAY_GRACE: Duration = Duration::from_secs(5);
/// How long the running steps get at the end; a step that takes longer is run again at the start.
const DRAIN_GRACE: Duration = Duration::from_secs(10);
/// How long the archivist gets for the batch at hand; what it leaves is durable in the journal.
const ARCHIVE_GRACE: Duration = Duration::from_secs(10);
/// Samples of histograms pile up until they are folded.
const UPKEEP: Duration = Duration::from_secs(5);

/// A running fleet.
pub struct Fleet {
    pub parts: Parts,
    tasks: Tasks,
    runner: Runner,
    archivist: Archivist,
}

impl Fleet {
    /// Opens the stores, ends the leases of the run before, and starts every role.
    ///
    /// The caller holds the data directory.
    ///
    /// # Errors
    /// A store cannot be opened; the text names the file and the remedy.
    pub async fn start(config: &Config, listener: TcpListener, metrics: Metrics) -> Result<Self> {
        let parts = Parts::open(config).await?;
        // Whoever held a lease is gone: this process has the directory. Waiting for the leases to
        // run out would only delay the start.
        parts.store.release_all().await.context("the leases of the run before")?;
        let tasks = Tasks::new();
        let runner = Runner::start(runner_deps(&parts), runner_config());
        let archivist = Archivist::start(archivist_deps(&parts), ArchivistConfig::default());
        let app = dispatcher::app(gateway_deps(&parts, config, metrics.clone()), &tasks);
        dispatcher::serve(listener, app, &tasks);
        gauges::start(&parts, &tasks);
        tasks.spawn("metrics-upkeep", move |stop| upkeep(metrics, stop));
        Ok(Self { parts, tasks, runner, archivist })
    }

    pub fn tokens(&self) -> &dyn Tokens {
        &self.parts.store
    }

    /// The model provider in use, in words.
    pub fn provider(&self) -> String {
        self.parts.effects.provider()
    }

    /// Cancelled if a task of the fleet breaks down.
    pub fn failed(&self) -> CancellationToken {
        self.tasks.failed()
    }

    /// Ends in order: no new requests, the running steps to their end, the archive, the store.
    pub async fn stop(self) {
        if !self.tasks.shut_down(GATEWAY_GRACE).await {
            tracing::warn!("open requests were cut off");
        }
        if tokio::time::timeout(DRAIN_GRACE, self.runner.drain()).await.is_err() {
            tracing::warn!("running steps were cut off; they run again at the next start");
        }
        if tokio::time::timeout(ARCHIVE_GRACE, self.archivist.stop()).await.is_err() {
            tracing::warn!("the archive was cut off; the journal keeps what it does not have");
        }
        self.parts.store.close().await;
        tracing::info!("stopped");
    }
}

async fn upkeep(metrics: Metrics, stop: CancellationToken) {
    let mut tick = tokio::time::interval(UPKEEP);
    while stop.run_until_cancelled(tick.tick()).await.is_some() {
        metrics.upkeep();
    }
}

fn runner_config() -> RunnerConfig {
    let host =
        std::fs::read_to_string("/etc/hostname").map_or_else(|_| "localhost".into(), |name| name.trim().to_owned());
    // A restart is another worker (DESIGN 4), so the id is new each time.
    RunnerConfig::new(WorkerId::from(Ulid::generate()), host, env!("CARGO_PKG_VERSION"))
}

fn runner_deps(parts: &Parts) -> RunnerDeps {
    let store = Arc::new(parts.store.clone());
    RunnerDeps {
        ledger: store.clone(),
        sessions: store.clone(),
        commits: store.clone(),
        journal: store.clone(),
        leases: store,
        archive: parts.archive.clone(),
        queue: parts.queue.clone(),
        effects: parts.effects.clone(),
        live: parts.live.clone(),
        clock: parts.clock.clone(),
    }
}

fn archivist_deps(parts: &Parts) -> ArchivistDeps {
    let store = Arc::new(parts.store.clone());
    ArchivistDeps { journal: store.clone(), ledger: store, archive: parts.archive.clone(), clock: parts.clock.clone() }
}

fn gateway_deps(parts: &Parts, config: &Config, metrics: Metrics) -> dispatcher::Deps {
    let store = Arc::new(parts.store.clone());
    dispatcher::Deps {
        ledger: store.clone(),
        sessions: store.clone(),
        journal: store.clone(),
        leases: store.clone(),
        tokens: store,
        archive: parts.archive.clone(),
        queue: parts.queue.clone(),
        live: parts.live.clone(),
        clock: parts.clock.clone(),
        effects: parts.effects.clone(),
        metrics: Arc::new(move || metrics.render()),
        config: dispatcher::Config {
            admin_token: config.token.clone(),
            mode: "embedded".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            ..dispatcher::Config::default()
        },
    }
}
