//! Keeping shards: heartbeat, renewal, target assignment, hand-over (DESIGN 4). No leader: every
//! worker computes the same assignment from the same rows.

mod clock;
mod plan;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use domain::failure::Failure;
use domain::outage::TELL_EVERY;
use domain::ports::{Lease, ShardInfo, WorkerInfo};
use schemas::id::{Shard, WorkerId};
use schemas::telemetry::metric;
use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

pub(crate) use clock::LeaseClock;
use plan::{Plan, View};

use crate::heartbeat::Heartbeat;
use crate::runner::Shared;
use crate::shard_task::{End, ShardTask};

/// Runs until told to leave and all is handed over; owns the tasks of the shards it holds.
pub(crate) struct LeaseKeeper {
    shared: Arc<Shared>,
    /// Told to leave, by this process or by an operator.
    leave: CancellationToken,
    leaving: bool,
    heartbeat: Heartbeat,
    /// By shard, so that a simulation repeats itself.
    held: BTreeMap<Shard, Held>,
    tasks: JoinSet<(Lease, End)>,
    renewed: Option<Instant>,
    /// Not told of yet.
    lost: Vec<Lease>,
    told_lost: Option<Instant>,
}

struct Held {
    lease: Lease,
    /// Told to end in good order.
    hand_over: CancellationToken,
    /// Told that another owns the shard; cancels `hand_over`, too.
    lost: CancellationToken,
    task: AbortHandle,
}

impl LeaseKeeper {
    pub fn new(shared: Arc<Shared>, leave: CancellationToken) -> Self {
        let config = &shared.config;
        let heartbeat = Heartbeat::new(&config.worker, &config.host, &config.version, &config.roles);
        let (held, tasks) = (BTreeMap::new(), JoinSet::new());
        let (lost, told_lost) = (Vec::new(), None);
        Self { shared, leave, leaving: false, heartbeat, held, tasks, renewed: None, lost, told_lost }
    }

    pub async fn run(mut self) {
        let mut look = tokio::time::interval(Duration::from_millis(self.shared.config.look_ms));
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !self.leaving || !self.tasks.is_empty() {
            tokio::select! {
                biased;
                () = self.leave.cancelled(), if !self.leaving => self.begin_to_leave(),
                Some(ended) = self.tasks.join_next() => self.on_task_end(ended).await,
                // Goes on while leaving: a step that takes its grace must not lose its lease.
                _ = look.tick() => self.look().await,
            }
        }
        self.tell_lost();
        metrics::gauge!(metric::SHARDS_OWNED).set(0.0);
        metrics::gauge!(metric::SESSIONS_ACTIVE).set(0.0);
        if let Err(failure) = self.shared.deps.leases.deregister(&self.shared.config.worker).await {
            tracing::warn!(%failure, "could not deregister; the heartbeat runs out by itself");
        }
    }

    fn begin_to_leave(&mut self) {
        tracing::info!(shards = self.held.len(), "handing over all shards");
        self.leaving = true;
        // The others are told at the next look, so that it is they who claim what is released.
        self.renewed = None;
        for held in self.held.values() {
            held.hand_over.cancel();
        }
    }

    async fn look(&mut self) {
        // A look that takes longer has outlived what it saw.
        let bound = Duration::from_millis(self.shared.config.lease_ms / 2);
        let looked = tokio::time::timeout(bound, self.try_look()).await.unwrap_or_else(|_| Err(late(bound)));
        match looked {
            Ok(()) => host::stall::clear(),
            Err(failure) => host::stall::note("leases", &failure),
        }
        if self.told_lost.is_none_or(|at| at.elapsed() >= TELL_EVERY) {
            self.tell_lost();
        }
        metrics::gauge!(metric::SHARDS_OWNED).set(self.held.len() as f64);
        metrics::gauge!(metric::SESSIONS_ACTIVE).set(self.shared.live_sessions() as f64);
    }

    async fn try_look(&mut self) -> Result<(), Failure> {
        let shared = self.shared.clone();
        let (config, leases) = (&shared.config, &shared.deps.leases);
        if self.renewed.is_none_or(|at| at.elapsed() >= Duration::from_millis(config.renew_ms)) {
            self.heartbeat().await?;
            self.renew().await?;
        }
        for worker in leases.release_gone().await? {
            tracing::info!(%worker, "the process of a worker is gone; what it held is free");
        }
        let workers = leases.workers(i64::try_from(config.lease_ms).unwrap_or(i64::MAX)).await?;
        let shards = leases.shards().await?;
        let plan = self.plan(&workers, &shards);
        self.rebalance(plan).await
    }

    async fn heartbeat(&mut self) -> Result<(), Failure> {
        let leases = self.shared.deps.leases.clone();
        if self.heartbeat.beat(leases.as_ref(), self.leaving).await? {
            self.leave.cancel();
        }
        Ok(())
    }

    async fn renew(&mut self) -> Result<(), Failure> {
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
        self.renewed = Some(asked_at);
        Ok(())
    }

    /// Somebody else took the shard: its sessions are dropped as they are, with the calls they
    /// wait for. Nothing of it could be committed any more.
    fn on_lost(&mut self, lease: &Lease) {
        if let Some(held) = self.held.remove(&lease.shard) {
            held.lost.cancel();
            held.task.abort();
            self.note_lost(lease.clone());
        }
    }

    fn note_lost(&mut self, lease: Lease) {
        tracing::debug!(shard = %lease.shard, epoch = %lease.epoch, "lost a shard");
        metrics::counter!(metric::LEASE_CHANGES, "change" => "lost").increment(1);
        self.lost.push(lease);
    }

    /// One line for all that were lost since the last one: a process that was stopped loses them together.
    fn tell_lost(&mut self) {
        let Some(one) = self.lost.first() else { return };
        tracing::warn!(shards = self.lost.len(), one = %one.shard, epoch = %one.epoch, "lost shards to other workers");
        self.lost.clear();
        self.told_lost = Some(Instant::now());
    }

    fn plan(&self, workers: &[WorkerInfo], shards: &[ShardInfo]) -> Plan {
        let runs = |info: &&WorkerInfo| !info.draining && info.roles.iter().any(|role| role == "runner");
        let alive: Vec<WorkerId> = workers.iter().filter(runs).map(|info| info.worker.clone()).collect();
        let config = &self.shared.config;
        let view = View { me: &config.worker, alive: &alive, moves: config.moves_per_look };
        view.plan(shards, |lease| self.held.get(&lease.shard).is_some_and(|held| held.lease == *lease))
    }

    async fn rebalance(&mut self, plan: Plan) -> Result<(), Failure> {
        let shared = self.shared.clone();
        let (config, leases) = (&shared.config, &shared.deps.leases);
        for shard in plan.give {
            if let Some(held) = self.held.get(&shard) {
                held.hand_over.cancel();
            }
        }
        for lease in plan.stray {
            leases.release(&config.worker, &lease).await?;
        }
        for shard in plan.claim {
            if self.leaving || self.leave.is_cancelled() || self.held.contains_key(&shard) {
                continue;
            }
            if let Some(lease) = leases.claim(shard, &config.worker, config.lease_ms).await? {
                self.take_up(lease);
            }
        }
        Ok(())
    }

    fn take_up(&mut self, lease: Lease) {
        tracing::debug!(shard = %lease.shard, epoch = %lease.epoch, "claimed a shard");
        metrics::counter!(metric::LEASE_CHANGES, "change" => "claimed").increment(1);
        let lost = CancellationToken::new();
        let hand_over = lost.child_token();
        let task = ShardTask::new(self.shared.clone(), lease.clone(), hand_over.clone(), lost.clone());
        let name = lease.clone();
        let task = self.tasks.spawn(async move { (name, task.run().await) });
        self.held.insert(lease.shard, Held { lease, hand_over, lost, task });
    }

    /// A shard task ends when told to, when it met the fence, or by a panic.
    async fn on_task_end(&mut self, ended: Result<(Lease, End), JoinError>) {
        let (lease, end) = match ended {
            Ok(ended) => ended,
            Err(error) => {
                let Some(held) = self.held.values().find(|held| held.task.id() == error.id()) else { return };
                tracing::error!("a shard task panicked; its shard is claimed again");
                (held.lease.clone(), End::HandedOver)
            }
        };
        // After a loss the shard may be held anew, under a later epoch.
        if self.held.get(&lease.shard).is_none_or(|held| held.lease != lease) {
            return;
        }
        self.held.remove(&lease.shard);
        if end == End::Lost {
            self.note_lost(lease);
            return;
        }
        metrics::counter!(metric::LEASE_CHANGES, "change" => "released").increment(1);
        let bound = Duration::from_millis(self.shared.config.lease_ms / 2);
        let release = self.shared.deps.leases.release(&self.shared.config.worker, &lease);
        match tokio::time::timeout(bound, release).await {
            Ok(Ok(())) => {}
            // Its lease runs out by itself.
            Ok(Err(failure)) => host::stall::note("shards that are given back", &failure),
            Err(_) => host::stall::note("shards that are given back", &late(bound)),
        }
    }
}

pub(crate) fn late(bound: Duration) -> Failure {
    Failure::unavailable(format!("the store did not answer within {} ms", bound.as_millis()))
}
