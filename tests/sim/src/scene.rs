//! A fleet whose workers come, go, die and freeze when a test says so; what moves when is measured
//! in simulated time.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::ports::Leases;
use domain::shard::target_owner;
use schemas::id::{Shard, WorkerId};
use tokio::time::Instant;

use crate::clients::Book;
use crate::fleet::Machine;
use crate::plan::Plan;
use crate::world::World;

/// How often a condition is looked at, and how long at most.
const LOOK: Duration = Duration::from_millis(10);
const WAIT_MAX: Duration = Duration::from_secs(120);

pub struct Scene {
    pub world: World,
    pub book: Book,
    machines: BTreeMap<String, Machine>,
}

impl Scene {
    pub fn new(plan: Plan) -> Self {
        Self { world: World::new(plan), book: Book::default(), machines: BTreeMap::new() }
    }

    /// A machine joins, which starts a new process at once should its own die.
    pub fn join(&mut self, name: &str) {
        let machine = Machine::start(&self.world, name.into(), false);
        machine.heal();
        self.machines.insert(name.into(), machine);
    }

    /// A machine leaves in good order.
    pub async fn leave(&mut self, name: &str) {
        let machine = self.machines.remove(name).expect("it has joined");
        assert!(machine.end(WAIT_MAX).await, "{name} does not leave");
    }

    /// The process of a machine is killed; for good if it is not to start again.
    pub fn kill(&mut self, name: &str, for_good: bool) {
        let machine = self.machines.get(name).expect("it has joined");
        machine.process().expect("it runs").faults.crash();
        if for_good {
            let machine = self.machines.remove(name).expect("it has joined");
            tokio::spawn(machine.end(WAIT_MAX));
        }
    }

    /// The process of a machine stands still for a while.
    pub fn freeze(&self, name: &str, length: Duration) {
        self.machines[name].process().expect("it runs").faults.freeze(length);
    }

    /// Who holds which shard under a lease that runs.
    pub async fn owners(&self) -> BTreeMap<Shard, WorkerId> {
        let shards = self.world.store.shards().await.expect("the store has no faults");
        let live = shards.into_iter().filter(|info| info.lease_ms_left > 0);
        live.filter_map(|info| Some((info.shard, info.owner?))).collect()
    }

    /// Waits until all of these machines (or processes) are there, and every shard is held by the one
    /// of them that should have it. Answers how long that took.
    pub async fn settled(&self, machines: &[&str]) -> Duration {
        let started = Instant::now();
        loop {
            let owners = self.owners().await;
            let mut alive: Vec<WorkerId> = owners.values().cloned().collect();
            alive.extend(self.registered().await);
            alive.retain(|worker| machines.iter().any(|name| is_of(worker, name)));
            alive.sort();
            alive.dedup();
            let whole = owners.len() == usize::from(self.world.plan.shards) && alive.len() == machines.len();
            if whole && owners.iter().all(|(shard, owner)| target_owner(*shard, &alive) == Some(owner)) {
                return started.elapsed();
            }
            assert!(started.elapsed() < WAIT_MAX, "the shards do not settle: {owners:?} among {alive:?}");
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn registered(&self) -> Vec<WorkerId> {
        let workers = self.world.store.workers(self.world.plan.lease_ms as i64).await.expect("no faults");
        workers.into_iter().filter(|info| !info.draining).map(|info| info.worker).collect()
    }

    /// Changes of ownership so far.
    pub fn claims(&self) -> usize {
        self.world.store.claim_log().len()
    }
}

/// Whether a process is of this machine, or is this process.
pub fn is_of(worker: &WorkerId, machine: &str) -> bool {
    let name = worker.as_str();
    name == machine || name.rsplit_once('.').is_some_and(|(name, _)| name == machine)
}

/// Plays a scene in simulated time.
pub fn play<T>(scene: impl Future<Output = T>) -> T {
    crate::run::runtime().block_on(scene)
}
