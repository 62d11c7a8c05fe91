//! What outlives the processes, and the processes: runner and executor of one worker on faulty ports.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::chat::ChatCall;
use domain::ports::{ActionCall, Conversations, Definitions, Inserted};
use schemas::conversation::{LogRow, Turn};
use schemas::id::{Namespace, WorkerId};
use testkit::contract::words::{conversation, gapless, log_query, turn_id};
use testkit::fake::{Breakages, MemStore, ScriptedModels, ScriptedTools, WordEmbedder};
use testkit::unreliable::{CrashPoint, FaultRates, Faults, Unreliable};
use worker::executor::{Executor, ExecutorConfig, ExecutorDeps, Nudge, NudgingCommits};
use worker::runner::{Runner, RunnerDeps};
use worker::talk::{TalkDeps, Talking};

use super::script::{CONVERSATION, Script, TURN, object_to};
use super::speaking::Speaking;
use crate::drill::post;
use crate::fleet::{self, runner_config, runner_deps};
use crate::plan::Plan;
use crate::world::World;

/// Cheap to clone; clones are the same place.
#[derive(Clone)]
pub struct Place {
    pub script: &'static Script,
    pub world: World,
    pub models: ScriptedModels,
    pub tools: ScriptedTools,
}

/// One start of the worker.
pub struct Process {
    pub faults: Faults,
    worker: WorkerId,
    runner: Runner,
    executor: Executor,
}

impl Place {
    /// The turn has been asked for, and nobody is at work yet.
    pub async fn new(script: &'static Script) -> Self {
        Self::with(script, Breakages::default()).await
    }

    /// The same, on a store that is broken like this.
    pub async fn with(script: &'static Script, breakages: Breakages) -> Self {
        let plan = Plan { lease_ms: 2_000, renew_ms: 500, idle_evict_ms: 2_000, breakages, ..Plan::calm(1) };
        let world = World::new(plan);
        open(&world.store, script).await;
        for (id, body) in script.opening() {
            post(&world, id, &body).await;
        }
        let witness = world.store.clone();
        let models = ScriptedModels::new(Arc::new(script.reply), script.thought, world.clock.clone()).with_witness(
            Arc::new(move |call: &ChatCall| object_to(&witness, call).or_else(|| (script.object)(&witness, call))),
        );
        let store = world.store.clone();
        let tools = ScriptedTools::new(Arc::new(move |call: ActionCall| (script.work)(store.clone(), call)));
        Self { script, world, models, tools }
    }

    /// The log of the conversation; fails if it has a hole.
    pub async fn log(&self) -> Vec<LogRow> {
        let rows = Conversations::log(&self.world.store, &log_query(CONVERSATION)).await;
        let rows = rows.expect("no faults are scripted");
        gapless(&rows);
        rows
    }

    /// How many records of it are of sessions, and not of people who post.
    pub async fn told(&self) -> usize {
        self.log().await.iter().filter(|row| row.record.session_id.is_some()).count()
    }

    /// The turn that was asked for.
    pub async fn turn(&self) -> Turn {
        let found = self.world.store.turn(&Namespace::default_ns(), &turn_id(TURN)).await;
        found.expect("no faults are scripted").expect("it began")
    }

    pub fn start(&self, name: &str, crash: Option<CrashPoint>) -> Process {
        let world = &self.world;
        let faults = Faults::new(name, world.dice.fork(), FaultRates::NONE, world.trace.clone());
        if let Some(point) = crash {
            faults.crash_at(point);
        }
        let worker = WorkerId::parse(name).expect("an id");
        let process = fleet::Process { faults: faults.clone(), clock: world.clock.sibling() };
        let store = Arc::new(Unreliable::new(Arc::new(world.store.clone()), faults.clone()));
        let nudge = Nudge::default();
        let deps = RunnerDeps {
            commits: Arc::new(NudgingCommits::new(store.clone(), nudge.clone())),
            effects: Arc::new(self.talking(&store, &faults)),
            ..runner_deps(world, &process)
        };
        let executor = ExecutorDeps {
            operations: store.clone(),
            runner: Arc::new(Unreliable::new(Arc::new(self.tools.clone()), faults.clone())),
            queue: deps.queue.clone(),
            ledger: store,
            tasks: None,
        };
        let config = ExecutorConfig { claim_ms: 500, grace_ms: 500, ..ExecutorConfig::new(worker.clone()) };
        Process {
            runner: Runner::start(deps, runner_config(world, &worker)),
            executor: Executor::start(executor, config, nudge),
            faults,
            worker,
        }
    }

    fn talking(&self, store: &Arc<Unreliable<MemStore>>, faults: &Faults) -> Talking {
        let world = &self.world;
        let deps = TalkDeps {
            conversations: store.clone(),
            sessions: store.clone(),
            definitions: store.clone(),
            models: Arc::new(Unreliable::new(Arc::new(Speaking(self.models.clone())), faults.clone())),
            memories: store.clone(),
            embedder: Arc::new(WordEmbedder::new("words")),
            live: Arc::new(Unreliable::new(Arc::new(world.live.clone()), faults.clone())),
            clock: Arc::new(world.clock.sibling()),
            ends: Arc::default(),
            budgets: BTreeMap::new(),
        };
        Talking::new(deps, Arc::new(Unreliable::new(Arc::new(world.effects.clone()), faults.clone())))
    }

    /// The process is gone with all that it had in memory, and the database sees its connections close.
    pub fn end(&self, process: Process) {
        process.runner.kill();
        process.executor.kill();
        self.world.store.process_ended(process.worker);
    }
}

/// Who takes part is defined, and what was said before is there.
async fn open(store: &MemStore, script: &Script) {
    let namespace = Namespace::default_ns();
    let defined = store.define(&namespace, &(script.definitions)()).await;
    assert!(defined.is_ok(), "{defined:?}");
    let before = (script.before)();
    if !before.is_empty() {
        let opened = Conversations::create(store, &namespace, &conversation(CONVERSATION), &[], &before).await;
        assert!(matches!(opened, Ok(Inserted::New(_))), "{opened:?}");
    }
}
