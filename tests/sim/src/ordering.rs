//! The ordering attack: many ordered inputs to many sessions at once, doubled and shuffled on the
//! queues, while workers die and shards move. Every session must answer in order, each once.

use std::time::Duration;

use domain::invariant::{Broken, Invariant};
use domain::ports::{Ledger, Queue, Verdict};
use schemas::action::Action;
use schemas::id::Namespace;
use serde_json::json;
use testkit::dice::Dice;
use testkit::fake::QueueFaults;

use crate::chaos;
use crate::clients::{Book, new_action};
use crate::fleet::Machine;
use crate::oracle::{self, Stories};
use crate::plan::Plan;
use crate::quiet;
use crate::world::World;

/// How large the attack is.
#[derive(Debug, Clone, Copy)]
pub struct Attack {
    pub sessions: usize,
    pub inputs: usize,
}

/// Runs it; answers what is broken.
pub fn attack(seed: u64, size: Attack) -> Vec<Broken> {
    crate::run::runtime().block_on(run(seed, size))
}

fn plan(seed: u64) -> Plan {
    let queue = QueueFaults {
        lose: 0.05,
        repeat: 0.2,
        straggle: 0.2,
        delay_ms: 0..20,
        straggle_ms: 50..3_000,
        lost_confirm: 0.05,
        lost_channel: 0.002,
        linger_ms: 0..2_000,
        overlap: 0.5,
        prefetch: 1..64,
        ..QueueFaults::NONE
    };
    let calm = Plan::calm(8);
    Plan { seed, workers: 3, chaos_ms: 700, churn_ms: 900, lease_ms: 2_000, renew_ms: 500, noticed: 0.5, queue, ..calm }
}

async fn run(seed: u64, size: Attack) -> Vec<Broken> {
    let (world, book) = (World::new(plan(seed)), Book::default());
    let mut machines: Vec<Machine> =
        (0..world.plan.workers).map(|n| Machine::start(&world, format!("w{n}"), false)).collect();
    machines.push(Machine::start(&world, "archivist".into(), true));
    tokio::select! {
        biased;
        () = post(&world, size) => {}
        () = chaos::strike(&world, &machines) => {}
        () = chaos::churn(&world, &machines) => {}
    }
    world.heal();
    machines.iter().for_each(Machine::heal);
    let mut broken = quiet::settle(&world, &book).await;
    broken.extend(oracle::check(&world, &book));
    broken.extend(out_of_order(&world, size));
    broken
}

fn text(n: usize) -> String {
    format!("in:default.{n}")
}

/// Accepts in order, session by session in turn, and publishes in any order.
async fn post(world: &World, size: Attack) {
    let dice = world.dice.fork();
    let mut on_the_way: Vec<Action> = Vec::new();
    for n in 0..=size.inputs {
        let body = |session: usize| match n {
            0 => json!({"type": "create", "session_id": format!("s{session}"), "payload": {"moniker": "echo"}}),
            _ => json!({"type": "input", "session_id": format!("s{session}"), "payload": {"text": text(n)}}),
        };
        let new = |session| new_action(Namespace::default_ns(), &format!("{session}-{n}"), "attacker", &body(session));
        let verdicts =
            world.store.accept((0..size.sessions).map(new).collect()).await.expect("the store has no faults");
        for verdict in verdicts {
            let Verdict::Accepted(accepted) = verdict else { panic!("not accepted: {verdict:?}") };
            on_the_way.push(accepted.action);
        }
        if n % 3 == 0 {
            publish(world, &dice, std::mem::take(&mut on_the_way)).await;
            tokio::time::sleep(Duration::from_millis(dice.range(1..200))).await;
        }
    }
}

async fn publish(world: &World, dice: &Dice, mut actions: Vec<Action>) {
    for last in (1..actions.len()).rev() {
        actions.swap(last, dice.index(last + 1));
    }
    for action in &actions {
        // Lost, or the broker is away: its owner finds it in the ledger.
        let _ = world.queue.publish(std::slice::from_ref(action)).await;
    }
}

fn out_of_order(world: &World, size: Attack) -> Vec<Broken> {
    let expected: Vec<String> = (1..=size.inputs).map(text).collect();
    let stories = Stories::of(world);
    let said = |story: &oracle::Story| story.steps().filter_map(|step| step.text.clone()).collect::<Vec<_>>();
    let wrong = stories.0.iter().filter(|story| said(story) != expected);
    let broken = |story: &oracle::Story| Broken {
        invariant: Invariant::A2,
        evidence: format!("{} answered {:?}", story.row.key, said(story)),
    };
    wrong.map(broken).collect()
}
