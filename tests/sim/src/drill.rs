//! A small fleet of one worker that may crash at one call, for the crash-point helper: whatever the
//! call, the history in the end is the same.

use domain::ports::{Ledger, Queue, Verdict};
use schemas::id::{Namespace, WorkerId};
use serde_json::{Value, json};
use testkit::crash::Run;
use testkit::unreliable::{CrashPoint, FaultRates, Faults};

use crate::clients::{Book, new_action};
use crate::fleet::{Process, Running};
use crate::oracle;
use crate::plan::Plan;
use crate::quiet;
use crate::world::World;

/// What a session came to: everything but times and offsets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Came {
    pub session: String,
    pub status: String,
    pub steps: Vec<String>,
    pub guidance: Vec<String>,
    /// In its conversation, if it has one.
    pub said: Vec<Value>,
}

/// Runs the scenario with a crash at the given call of its worker.
pub async fn drill(crash: Option<CrashPoint>) -> Run<Vec<Came>> {
    let (world, book) = (World::new(Plan { lease_ms: 2_000, renew_ms: 500, ..Plan::calm(1) }), Book::default());
    for (id, body) in script() {
        post(&world, id, &body).await;
    }
    let first = Faults::new("first", world.dice.fork(), FaultRates::NONE, world.trace.clone());
    if let Some(point) = crash {
        first.crash_at(point);
    }
    let running = start(&world, first.clone());
    let settled = tokio::select! {
        biased;
        () = first.crashed() => false,
        broken = quiet::settle(&world, &book) => broken.is_empty(),
    };
    let calls = first.calls();
    running.kill();
    if !settled {
        let second = start(&world, Faults::new("second", world.dice.fork(), FaultRates::NONE, world.trace.clone()));
        let broken = quiet::settle(&world, &book).await;
        assert!(broken.is_empty(), "after a crash at {crash:?}: {broken:?}");
        second.kill();
    }
    let broken = oracle::check(&world, &book);
    assert!(broken.is_empty(), "after a crash at {crash:?}: {broken:?}\n{}", world.trace.tail(80).join("\n"));
    Run { calls, history: came(&world) }
}

fn start(world: &World, faults: Faults) -> Running {
    let worker = WorkerId::parse(faults.name()).expect("an id");
    Running::start(world, Process { faults, clock: world.clock.sibling() }, &worker, true, true)
}

/// All is posted before the worker starts, so that nothing depends on who is faster.
fn script() -> Vec<(&'static str, Value)> {
    let to =
        |session: &str, verb: &str, payload: Value| json!({"type": verb, "session_id": session, "payload": payload});
    let config = json!({"url": "http://step.example/", "effect": "at_most_once"});
    let count = json!({"moniker": "count", "config": {"until": 8}, "loop_interval_ms": 100, "conversation_id": "room"});
    let call = json!({"moniker": "http", "state": {"until": 3}, "config": config});
    vec![
        ("1", to("echo", "create", json!({"moniker": "echo", "conversation_id": "room"}))),
        ("2", to("echo", "input", json!({"text": "in:default.1"}))),
        ("3", to("echo", "input", json!({"text": "in:default.2"}))),
        ("4", to("count", "create", count)),
        ("5", to("count", "interrupt", json!({"guidance": {"mark": "g:default.5"}}))),
        ("6", to("joke", "create", json!({"moniker": "tell_a_joke", "max_steps": 4, "loop_interval_ms": 10}))),
        ("9", to("echo", "input", json!({"text": "in:default.9"}))),
        ("10", to("call", "create", call)),
        ("7", to("gone", "create", json!({"moniker": "echo"}))),
        ("8", to("gone", "destroy", json!({}))),
    ]
}

/// Accepts an action and publishes it, as a gateway does.
pub async fn post(world: &World, id: &str, body: &Value) {
    let action = new_action(Namespace::default_ns(), id, "drill", body);
    let verdicts = world.store.accept(vec![action]).await.expect("no faults are scripted");
    for verdict in verdicts {
        let Verdict::Accepted(accepted) = verdict else { panic!("{id} is not accepted: {verdict:?}") };
        world.queue.publish(&[accepted.action]).await.expect("no faults are scripted");
    }
}

fn came(world: &World) -> Vec<Came> {
    let stories = oracle::Stories::of(world);
    let one = |story: &oracle::Story| Came {
        session: story.row.key.to_string(),
        status: format!("{:?} {:?}", story.row.head.status, story.row.head.stop_reason),
        steps: story.steps().map(|step| format!("{} {:?}", step.iteration, step.text)).collect(),
        guidance: story.steps().filter_map(|step| step.guidance.as_ref()).map(|g| g.as_str().to_owned()).collect(),
        said: oracle::said(world, story),
    };
    // A call in doubt fails its session, so what that came to depends on the crash: it is the oracle
    // that sees whether a call was repeated.
    stories.0.iter().filter(|story| story.row.spec.moniker != "http").map(one).collect()
}

/// One crash at every `stride`th call, before and after it. Answers how many crashes were tried.
pub fn drill_every(stride: usize) -> Result<u64, String> {
    testkit::crash::at_every_call(stride, |crash| crate::run::runtime().block_on(drill(crash)))
}
