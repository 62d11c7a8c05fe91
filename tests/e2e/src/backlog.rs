//! Control behind a backlog: a pause does not wait for the inputs that were there before it.

use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::{Value, json};

use crate::harness::{Harness, assert_chain, wait};

const INPUTS: usize = 10_000;
/// Clients that post at the same time, each its own inputs one after the other.
const CLIENTS: usize = 64;
/// From the request until the session is seen to be paused.
const PAUSED_MAX: Duration = Duration::from_secs(1);
/// Parts in which the inputs are waited for: a busy machine may need longer for all than one wait takes.
const PARTS: usize = 8;

#[tokio::test]
async fn a_pause_overtakes_ten_thousand_inputs_of_its_shard_and_loses_none() {
    let fleet = Harness::start_with(&["--shards", "1"]).await;
    fleet.create("deep", json!({ "moniker": "echo" })).await;
    fleet.create("beside", json!({ "moniker": "count", "loop_interval_ms": 20 })).await;
    fleet.wait_steps("beside", 1).await;
    // Inputs of a paused session queue; those of a running one it would take as fast as they come.
    pause(&fleet, "deep").await;
    let posting = Instant::now();
    post(&fleet).await;
    println!("{INPUTS} inputs posted in {:?}", posting.elapsed());
    assert_eq!(waiting(&fleet).await, INPUTS as u64);
    assert_eq!(taken(&fleet).await, 0);

    // The session that works through them.
    go_on(&fleet, 0).await;
    let took = pause(&fleet, "deep").await;
    assert!(took < PAUSED_MAX, "paused after {took:?}");
    let held = taken(&fleet).await;
    assert_eq!(waiting(&fleet).await, (INPUTS - held) as u64, "what was not taken waits");
    assert!(held < INPUTS, "there was no backlog any more");
    // The other session is the clock.
    let steps = fleet.steps("beside").await.len();
    fleet.wait_steps("beside", steps + 5).await;
    assert_eq!(taken(&fleet).await, held, "no step while paused");

    // Another session of the same shard, while that one is at work.
    go_on(&fleet, held).await;
    let took = pause(&fleet, "beside").await;
    assert!(taken(&fleet).await < INPUTS, "there was no backlog any more");
    assert!(took < PAUSED_MAX, "the session beside it was paused after {took:?}");

    for part in 1..=PARTS {
        let goal = INPUTS * part / PARTS;
        wait(&format!("{goal} inputs are taken"), || async { (taken(&fleet).await >= goal).then_some(()) }).await;
    }
    assert_eq!(waiting(&fleet).await, 0);
    check_order(&fleet.steps("deep").await);
    let still = fleet.steps("beside").await;
    fleet.tell("beside", "resume", json!({})).await;
    assert_chain(&fleet.wait_steps("beside", still.len() + 3).await);
}

/// Pauses a session; the time from the request until it is seen to be paused.
async fn pause(fleet: &Harness, session: &str) -> Duration {
    let asked = Instant::now();
    fleet.tell(session, "pause", json!({})).await;
    fleet.wait_status(session, "paused").await;
    asked.elapsed()
}

/// Resumes the session with the inputs, and waits until it has taken more of them.
async fn go_on(fleet: &Harness, before: usize) {
    fleet.tell("deep", "resume", json!({})).await;
    wait("it works through its inputs", || async { (taken(fleet).await > before).then_some(()) }).await;
}

/// Posts all inputs, each named after its client and its number there.
async fn post(fleet: &Harness) {
    join_all((0..CLIENTS).map(|client| async move {
        for input in (client..INPUTS).step_by(CLIENTS) {
            let text = format!("{client}/{}", input / CLIENTS);
            fleet.tell("deep", "input", json!({ "text": text })).await;
        }
    }))
    .await;
}

/// Accepted inputs that wait.
async fn waiting(fleet: &Harness) -> u64 {
    fleet.get("/api/sessions/deep").await["pending_actions"].as_u64().expect("a number")
}

/// Inputs that became steps, as the registry has it.
async fn taken(fleet: &Harness) -> usize {
    fleet.session("deep").await["iteration"].as_u64().map_or(0, |last| last as usize + 1)
}

/// Each input is one step, and those of one client, who waited for each answer, are in order.
fn check_order(steps: &[Value]) {
    assert_chain(steps);
    assert_eq!(steps.len(), INPUTS);
    let mut next = [0_usize; CLIENTS];
    for step in steps {
        let (client, number) = step["text"].as_str().and_then(|text| text.split_once('/')).expect("a text of ours");
        let (client, number): (usize, usize) = (client.parse().expect("a client"), number.parse().expect("a number"));
        assert_eq!(number, next[client], "inputs of client {client}: {step}");
        next[client] += 1;
    }
}
