//! Keeping shards: heartbeat, renewal, target assignment, hand-over (DESIGN 4). No leader: every
//! worker computes the same assignment from the same rows.

mod clock;
mod plan;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use domain::ports::{Lease, ShardInfo, WorkerInfo};
use schemas::id::{Shard, WorkerId};
use schemas::telemetry::metric;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(crate) use clock::LeaseClock;
use plan::plan;

use crate::runner::Shared;
use crate::shard_task::ShardTask;

/// Runs until told to stop; owns the tasks of the shards it holds.
pub(crate) struct LeaseKeeper {
    shared: Arc<Shared>,
    stop: CancellationToken,
    held: HashMap<Shard, Held>,
    tasks: JoinSet<Lease>,
    /// Whether the store was away at the last tick, to say so once.
    away: bool,
}

struct Held {
    lease: Lease,
    /// Told to end in good order.
    hand_over: CancellationToken,
    task: tokio::task::Id,
}

impl LeaseKeeper {
    pub fn new(shared: Arc<Shared>, stop: CancellationToken) -> Self {
        Self { shared, stop, held: HashMap::new(), tasks: JoinSet::new(), away: false }
    }

    pub async fn run(mut self) {
        let mut tick = tokio::time::interval(Duration::from_millis(self.shared.config.tick_ms));
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                Some(ended) = self.tasks.join_next() => self.on_task_end(ended).await,
                _ = tick.tick() => self.tick().await,
            }
        }
        self.drain().await;
    }

    async fn tick(&mut self) {
        match self.try_tick().await {
            Ok(()) => {
                if std::mem::take(&mut self.away) {
                    tracing::info!("the store answers again");
                }
            }
            Err(failure) => {
                if !std::mem::replace(&mut self.away, true) {
                    tracing::warn!(%failure, "cannot keep leases; will go on trying");
                }
            }
        }
        metrics::gauge!(metric::SHARDS_OWNED).set(self.held.len() as f64);
    }

    async fn try_tick(&mut self) -> Result<(), domain::failure::Failure> {
        let shared = self.shared.clone();
        let (config, leases) = (&shared.config, &shared.deps.leases);
        let info = WorkerInfo {
            worker: config.worker.clone(),
            host: config.host.clone(),
            version: config.version.clone(),
            roles: config.roles.clone(),
            draining: false,
            heartbeat_age_ms: 0,
        };
        if leases.heartbeat(&info).await? {
            self.stop.cancel();
            return Ok(());
        }
        self.renew().await?;
        let workers = leases.workers(i64::try_from(config.lease_ms).unwrap_or(i64::MAX)).await?;
        let shards = leases.shards().await?;
        self.rebalance(&workers, &shards).await
    }

    async fn renew(&mut self) -> Result<(), domain::failure::Failure> {
        let shared = self.shared.clone();
        let config = &shared.config;
        let asked_at = Instant::now();
        let held: Vec<Lease> = self.held.values().map(|held| held.lease.clone()).collect();
        if !held.is_empty() {
            let kept = shared.deps.leases.renew(&config.worker, &held, config.lease_ms).await?;
            for lost in held.iter().filter(|lease| !kept.contains(lease)) {
                self.on_lost(lost);
            }
        }
        // Counted from before the call, so that a slow answer never stretches the lease.
        self.shared.lease.renewed(asked_at);
        Ok(())
    }

    /// Somebody else took the shard: its sessions are dropped as they are; the fence holds.
    fn on_lost(&mut self, lease: &Lease) {
        tracing::warn!(shard = %lease.shard, epoch = %lease.epoch, "lost a shard");
        metrics::counter!(metric::LEASE_CHANGES, "change" => "lost").increment(1);
        if let Some(held) = self.held.remove(&lease.shard) {
            held.hand_over.cancel();
        }
    }

    async fn rebalance(
        &mut self,
        workers: &[WorkerInfo],
        shards: &[ShardInfo],
    ) -> Result<(), domain::failure::Failure> {
        let alive: Vec<WorkerId> = workers.iter().filter(|w| !w.draining).map(|w| w.worker.clone()).collect();
        let plan = plan(&self.shared.config.worker, &alive, shards, self.shared.config.moves_per_tick);
        for shard in plan.give {
            if let Some(held) = self.held.get(&shard) {
                held.hand_over.cancel();
            }
        }
        for shard in plan.claim {
            if self.held.contains_key(&shard) || self.stop.is_cancelled() {
                continue;
            }
            let config = &self.shared.config;
            if let Some(lease) = self.shared.deps.leases.claim(shard, &config.worker, config.lease_ms).await? {
                self.take_up(lease);
            }
        }
        Ok(())
    }

    fn take_up(&mut self, lease: Lease) {
        tracing::debug!(shard = %lease.shard, epoch = %lease.epoch, "claimed a shard");
        metrics::counter!(metric::LEASE_CHANGES, "change" => "claimed").increment(1);
        let hand_over = CancellationToken::new();
        let task = ShardTask::new(self.shared.clone(), lease.clone(), hand_over.clone());
        let name = lease.clone();
        let task = self.tasks.spawn(async move {
            task.run().await;
            name
        });
        self.held.insert(lease.shard, Held { lease, hand_over, task: task.id() });
    }

    /// A shard task ends when told to, or by a panic; either way its shard is given back.
    async fn on_task_end(&mut self, ended: Result<Lease, tokio::task::JoinError>) {
        let lease = match ended {
            Ok(lease) => lease,
            Err(error) => {
                tracing::error!("a shard task panicked; its shard is claimed again");
                let Some(held) = self.held.values().find(|held| held.task == error.id()) else { return };
                held.lease.clone()
            }
        };
        // After a loss the shard may be held anew, under a later epoch.
        if self.held.get(&lease.shard).is_none_or(|held| held.lease != lease) {
            return;
        }
        self.held.remove(&lease.shard);
        metrics::counter!(metric::LEASE_CHANGES, "change" => "released").increment(1);
        if let Err(failure) = self.shared.deps.leases.release(&self.shared.config.worker, &lease).await {
            tracing::warn!(%failure, shard = %lease.shard, "could not release a shard; its lease runs out by itself");
        }
    }

    async fn drain(&mut self) {
        for held in self.held.values() {
            held.hand_over.cancel();
        }
        while let Some(ended) = self.tasks.join_next().await {
            self.on_task_end(ended).await;
        }
        if let Err(failure) = self.shared.deps.leases.deregister(&self.shared.config.worker).await {
            tracing::warn!(%failure, "could not deregister; the heartbeat runs out by itself");
        }
    }
}
