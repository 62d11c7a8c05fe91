//! Simulated machines, each running one worker process at a time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use schemas::id::WorkerId;
use testkit::dice::Dice;
use testkit::fake::{SimClock, WordEmbedder};
use testkit::unreliable::{FaultRates, Faults, Unreliable};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use worker::archivist::{Archivist, ArchivistConfig, ArchivistDeps};
use worker::runner::{Runner, RunnerConfig, RunnerDeps};

use crate::world::World;

/// What a machine is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Run,
    /// Drain the process, then start another.
    Renew,
    /// Drain the process, then end.
    End,
}

/// A machine: its present process can be harmed, and is replaced when it dies.
pub struct Machine {
    name: String,
    process: Arc<Mutex<Option<Process>>>,
    order: watch::Sender<Order>,
    healed: Arc<Mutex<bool>>,
    task: JoinHandle<()>,
}

/// One start of a worker.
#[derive(Clone)]
pub struct Process {
    pub faults: Faults,
    pub clock: SimClock,
}

impl Machine {
    pub fn start(world: &World, name: String, archives: bool) -> Self {
        let process = Arc::new(Mutex::new(None));
        let healed = Arc::new(Mutex::new(false));
        let (order, orders) = watch::channel(Order::Run);
        let keeper = Keeper {
            world: world.clone(),
            dice: world.dice.fork(),
            name: name.clone(),
            archives,
            process: process.clone(),
            healed: healed.clone(),
            orders,
        };
        let order_back = order.clone();
        let task = tokio::spawn(keeper.run(order_back));
        Self { name, process, order, healed, task }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The process that runs now, if any.
    pub fn process(&self) -> Option<Process> {
        lock(&self.process).clone()
    }

    /// Replaces the process in good order.
    pub fn renew(&self) {
        self.order.send_replace(Order::Renew);
    }

    /// From now on processes of this machine have no faults.
    pub fn heal(&self) {
        *lock(&self.healed) = true;
        if let Some(process) = self.process() {
            process.faults.heal();
            process.clock.settle();
        }
    }

    /// Drains the process and waits for its end. Returns whether it came within the limit.
    pub async fn end(mut self, limit: Duration) -> bool {
        self.order.send_replace(Order::End);
        let ended = tokio::time::timeout(limit, &mut self.task).await.is_ok();
        self.task.abort();
        ended
    }
}

struct Keeper {
    world: World,
    dice: Dice,
    name: String,
    archives: bool,
    process: Arc<Mutex<Option<Process>>>,
    healed: Arc<Mutex<bool>>,
    orders: watch::Receiver<Order>,
}

impl Keeper {
    async fn run(mut self, order: watch::Sender<Order>) {
        for start in 0_u32.. {
            let running = self.start_process(start);
            let asked = tokio::select! {
                biased;
                () = running.process.faults.crashed() => None,
                asked = self.orders.wait_for(|order| *order != Order::Run) => asked.ok().map(|order| *order),
            };
            match asked {
                None => self.crash(running),
                Some(asked) => {
                    running.drain().await;
                    if asked == Order::End {
                        break;
                    }
                    // An order to end that came meanwhile stands.
                    order.send_if_modified(|order| {
                        let renewed = *order == Order::Renew;
                        if renewed {
                            *order = Order::Run;
                        }
                        renewed
                    });
                }
            }
            *lock(&self.process) = None;
            let down_ms = if *lock(&self.healed) { 100 } else { self.dice.range(10..6_000) };
            tokio::select! {
                biased;
                _ = self.orders.wait_for(|order| *order == Order::End) => break,
                () = tokio::time::sleep(Duration::from_millis(down_ms)) => {}
            }
        }
    }

    /// Most deaths are noticed by the database at once: the connections close. A machine that loses
    /// its power takes its leases with it.
    fn crash(&self, running: Running) {
        if self.dice.chance(self.world.plan.noticed) {
            self.world.store.process_ended(running.worker.clone());
        }
        running.kill();
    }

    fn start_process(&self, start: u32) -> Running {
        let world = &self.world;
        let name = format!("{}.{start}", self.name);
        let rates = if *lock(&self.healed) { FaultRates::NONE } else { world.plan.rates.clone() };
        let faults = Faults::new(&name, self.dice.fork(), rates, world.trace.clone());
        let process = Process { faults: faults.clone(), clock: world.clock.sibling() };
        *lock(&self.process) = Some(process.clone());
        world.trace.note(faults.name(), "starts");
        let worker = WorkerId::parse(&name).expect("names of machines are ids");
        Running::start(world, process, &worker, !self.archives, self.archives)
    }
}

/// A process and what runs in it.
pub struct Running {
    worker: WorkerId,
    process: Process,
    runner: Option<Runner>,
    archivist: Option<Archivist>,
}

impl Running {
    pub fn start(world: &World, process: Process, worker: &WorkerId, runs: bool, archives: bool) -> Self {
        let runner = || Runner::start(runner_deps(world, &process), runner_config(world, worker));
        let archivist = || Archivist::start(archivist_deps(world, &process, worker), archivist_config(world));
        let (runner, archivist) = (runs.then(runner), archives.then(archivist));
        Self { worker: worker.clone(), process, runner, archivist }
    }

    pub fn kill(self) {
        if let Some(runner) = self.runner {
            runner.kill();
        }
        if let Some(archivist) = self.archivist {
            archivist.kill();
        }
    }

    /// Ends in good order, or by a crash on the way.
    async fn drain(self) {
        let faults = self.process.faults.clone();
        let orderly = async move {
            if let Some(runner) = self.runner {
                runner.drain().await;
            }
            if let Some(archivist) = self.archivist {
                archivist.stop().await;
            }
        };
        tokio::select! {
            biased;
            () = faults.crashed() => {}
            () = orderly => {
                // An ended process makes no more calls.
                faults.crash();
            }
        }
    }
}

pub fn runner_deps(world: &World, process: &Process) -> RunnerDeps {
    let faults = &process.faults;
    let store = Arc::new(world.store.clone());
    RunnerDeps {
        ledger: Arc::new(Unreliable::new(store.clone(), faults.clone())),
        sessions: Arc::new(Unreliable::new(store.clone(), faults.clone())),
        operations: Arc::new(Unreliable::new(store.clone(), faults.clone())),
        conversations: Arc::new(Unreliable::new(store.clone(), faults.clone())),
        commits: Arc::new(Unreliable::new(store.clone(), faults.clone())),
        journal: Arc::new(Unreliable::new(store.clone(), faults.clone())),
        archive: Arc::new(Unreliable::new(Arc::new(world.archive.clone()), faults.clone())),
        leases: Arc::new(Unreliable::new(store, faults.clone())),
        queue: Arc::new(Unreliable::new(Arc::new(world.queue.clone()), faults.clone())),
        effects: Arc::new(Unreliable::new(Arc::new(world.effects.clone()), faults.clone())),
        live: Arc::new(Unreliable::new(Arc::new(world.live.clone()), faults.clone())),
        clock: Arc::new(process.clock.clone()),
    }
}

pub fn runner_config(world: &World, worker: &WorkerId) -> RunnerConfig {
    RunnerConfig {
        lease_ms: world.plan.lease_ms,
        renew_ms: world.plan.renew_ms,
        look_ms: world.plan.look_ms,
        poll_ms: 500,
        audit_ms: 900,
        idle_evict_ms: world.plan.idle_evict_ms,
        drain_grace_ms: 1_000,
        ..RunnerConfig::new(worker.clone(), "sim", "0")
    }
}

fn archivist_deps(world: &World, process: &Process, worker: &WorkerId) -> ArchivistDeps {
    let faults = &process.faults;
    let store = Arc::new(world.store.clone());
    ArchivistDeps {
        worker: worker.clone(),
        leases: Arc::new(Unreliable::new(store.clone(), faults.clone())),
        journal: Arc::new(Unreliable::new(store.clone(), faults.clone())),
        archive: Arc::new(Unreliable::new(Arc::new(world.archive.clone()), faults.clone())),
        tail: store.clone(),
        memories: Arc::new(world.archive.clone()),
        embedder: Arc::new(WordEmbedder::new("words")),
        transcripts: store.clone(),
        records: Arc::new(world.archive.clone()),
        ledger: Arc::new(Unreliable::new(store, faults.clone())),
        clock: Arc::new(process.clock.clone()),
    }
}

fn archivist_config(world: &World) -> ArchivistConfig {
    ArchivistConfig {
        interval_ms: 400,
        rows_max: 16,
        grace_ms: world.plan.grace_ms,
        reader_lag_ms: 200,
        trim_ms: 500,
        backoff_max_ms: 2_000,
        lease_ms: 2_000,
        renew_ms: 600,
        ..ArchivistConfig::default()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
