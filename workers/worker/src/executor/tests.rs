//! The executor against faithful fakes, on paused time: what runs, how often, and what is told of it.

mod billed;
mod crashes;
mod endings;
mod roles;

use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;
use domain::chat::ToolErrorCode;
use domain::failure::Failure;
use domain::ports::{ActionCall, ActionFailure, Deliveries, Probe, Trouble};
use domain::tool::{ActionRequest, ExecutionContext, result_id};
use schemas::action::{Action, Lane};
use schemas::conversation::{ApprovalRequest, Operation, OperationKind, OperationState};
use schemas::definition::{ActionKind, EffectClass, RetryPolicy, TargetType};
use schemas::id::{DefinitionId, Namespace, Shard};
use schemas::json::Json;
use serde_json::{Value, json};
use testkit::contract::Ports;
use testkit::contract::build::{key, worker};
use testkit::contract::words::{operation, operation_id};
use testkit::fake::{MemStore, SimClock};
use testkit::unreliable::{Faults, Unreliable};
use tokio::time::{Instant, sleep};

use super::*;

/// What the world makes of a call.
#[derive(Clone)]
struct Say {
    after_ms: u64,
    outcome: Result<Value, ActionFailure>,
}

fn ok() -> Say {
    Say { after_ms: 10, outcome: Ok(json!({"found": 3})) }
}

fn trouble(sent: bool) -> Say {
    Say { after_ms: 10, outcome: Err(ActionFailure::trouble(Trouble::Network, "the line is down", sent)) }
}

/// The world: answers in turn, the last answer for ever, and keeps what reached it.
#[derive(Clone, Default)]
struct Tools(Arc<Mutex<World>>);

#[derive(Default)]
struct World {
    answers: Vec<Say>,
    performed: BTreeMap<String, usize>,
    probe: Option<(u64, Probe)>,
    probes: usize,
    running: usize,
    running_most: usize,
}

impl Tools {
    fn that_say(answers: Vec<Say>) -> Self {
        Self(Arc::new(Mutex::new(World { answers, ..World::default() })))
    }

    fn with<T>(&self, look: impl FnOnce(&mut World) -> T) -> T {
        look(&mut self.0.lock().expect("unpoisoned"))
    }

    /// How often an operation reached the world.
    fn performed(&self, id: &str) -> usize {
        self.with(|world| world.performed.get(id).copied().unwrap_or(0))
    }
}

/// One that runs, for as long as this lives.
struct Running(Tools);

impl Running {
    fn new(tools: &Tools) -> Self {
        tools.with(|world| {
            world.running += 1;
            world.running_most = world.running_most.max(world.running);
        });
        Self(tools.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.with(|world| world.running -= 1);
    }
}

#[async_trait]
impl ActionRunner for Tools {
    async fn run(&self, call: &ActionCall) -> Result<Value, ActionFailure> {
        let _running = Running::new(self);
        let say = self.with(|world| {
            let earlier = world.performed.entry(call.operation_id.to_string()).or_default();
            *earlier += 1;
            let at = *earlier - 1;
            world.answers.get(at).or(world.answers.last()).cloned().unwrap_or_else(ok)
        });
        sleep(Duration::from_millis(say.after_ms)).await;
        assert!(call.tool != "panics", "as it is told to");
        say.outcome
    }

    async fn probe(&self, _call: &ActionCall) -> Probe {
        let answer = self.with(|world| {
            world.probes += 1;
            world.probe.clone()
        });
        let Some((after_ms, probe)) = answer else { return Probe::Unknown };
        sleep(Duration::from_millis(after_ms)).await;
        probe
    }
}

/// Keeps what was handed to it; carries nothing.
#[derive(Default)]
struct Heard(Mutex<Vec<Action>>);

#[async_trait]
impl Queue for Heard {
    async fn publish(&self, actions: &[Action]) -> Result<(), Failure> {
        self.0.lock().expect("unpoisoned").extend_from_slice(actions);
        Ok(())
    }

    async fn consume(&self, _shard: Shard, _lane: Lane) -> Result<Box<dyn Deliveries>, Failure> {
        Err(Failure::unavailable("nothing is delivered here"))
    }

    async fn consume_ingress(&self) -> Result<Box<dyn Deliveries>, Failure> {
        Err(Failure::unavailable("nothing is delivered here"))
    }

    async fn ping(&self) -> Result<(), Failure> {
        Ok(())
    }
}

/// A store with the session `s1` in a conversation.
struct Place {
    store: MemStore,
    ports: Ports,
    queue: Arc<Heard>,
    tools: Tools,
}

impl Place {
    async fn new(tools: Tools) -> Self {
        let store = MemStore::new(4, Arc::new(SimClock::new()));
        let ports = Ports::of(store.clone());
        ports.talker("s1", "c1").await;
        Self { store, ports, queue: Arc::default(), tools }
    }

    fn deps(&self, operations: Arc<dyn Operations>) -> ExecutorDeps {
        ExecutorDeps {
            operations,
            runner: Arc::new(self.tools.clone()),
            queue: self.queue.clone(),
            ledger: self.ports.ledger.clone(),
            tasks: None,
        }
    }

    fn executor(&self, name: &str) -> Executor {
        Executor::start(self.deps(self.ports.operations.clone()), config(name), Nudge::default())
    }

    /// One whose process may crash.
    fn mortal(&self, name: &str, faults: &Faults) -> Executor {
        let operations = Arc::new(Unreliable::new(Arc::new(self.store.clone()), faults.clone()));
        Executor::start(self.deps(operations), config(name), Nudge::default())
    }

    async fn dispatch(&self, operations: Vec<Operation>) {
        self.ports.dispatch(&worker("w1"), "s1", operations).await;
    }

    /// Lets (paused) time pass until an operation has ended.
    async fn until_ended(&self, id: &str) -> Value {
        for _ in 0..20_000 {
            if !self.ports.work_state(id).await.is_open() {
                return self.result(id).await;
            }
            sleep(Duration::from_millis(10)).await;
        }
        panic!("{id} has not ended: {:?}", self.ports.work(id).await);
    }

    /// The payload of an operation's result, which is there once or not at all.
    async fn result(&self, id: &str) -> Value {
        let action = result_id(&operation_id(id));
        let found = self.ports.ledger.action(&Namespace::default_ns(), &action).await.expect("a read");
        found.map_or(Value::Null, |view| view.payload.to_value())
    }

    /// Results that wait for the session.
    async fn results(&self) -> usize {
        let pending = self.ports.ledger.pending(&key("s1"), Lane::Work, 0, 1_000).await.expect("a read");
        pending.actions.iter().filter(|one| one.kind == schemas::action::ActionType::ToolResult).count()
    }
}

fn config(name: &str) -> ExecutorConfig {
    ExecutorConfig { claim_ms: 500, grace_ms: 500, ..ExecutorConfig::new(worker(name)) }
}

/// An operation that the executor understands: one second an attempt, three attempts.
fn task(id: &str, effect_class: EffectClass) -> Operation {
    let request = ActionRequest {
        target_type: TargetType::Task,
        target_id: DefinitionId::parse("find").expect("an id"),
        version: 1,
        action_id: DefinitionId::parse("lookup").expect("an id"),
        action_version: 1,
        kind: ActionKind::Mock,
        operation: "return".to_owned(),
        config: serde_json::Map::new(),
        output_schema: None,
        output_mapping: None,
        retry_on: RetryPolicy::default().retryable_errors,
        idempotency_key: None,
        input: json!({}),
        context: ExecutionContext::default(),
    };
    Operation {
        request: Json::of(&request),
        effect_class,
        timeout_ms: 1_000,
        max_attempts: 3,
        backoff_ms: 100,
        ..operation(id, "s1")
    }
}

fn gated(id: &str, default_approve: bool) -> Operation {
    let asked = ApprovalRequest { arguments_hash: "00".to_owned(), expires_ms: 3_000, default_approve };
    Operation { kind: OperationKind::Approval, approval: Some(asked), ..task(id, EffectClass::Idempotent) }
}
