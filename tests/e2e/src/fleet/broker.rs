//! The broker goes away: actions are accepted as before, and owners of shards find them in the ledger.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};

use super::gate::Gate;
use super::waits::{BROKER, assert_rare, has_said, said};
use super::{Fleet, SHARDS};
use crate::harness::{Harness, assert_chain, wait};
use crate::services;

/// From the request to its 202.
const ACCEPTED_MAX: Duration = Duration::from_secs(1);
/// From the last 202 to its step. Two seconds are promised; a busy machine gets more.
const APPLIED_MAX: Duration = Duration::from_secs(6);
/// Posted while the broker is away.
const INPUTS: usize = 10;

#[tokio::test]
#[ignore = "needs PostgreSQL and RabbitMQ: `ops/test fleet` runs it"]
async fn without_the_broker_actions_are_accepted_and_applied() {
    let mut fleet = Fleet::plan();
    let mut broker = Gate::reserve(&fleet.services.amqp);
    broker.open();
    fleet.set(services::AMQP, &broker.url);
    fleet.migrate(SHARDS).await;
    fleet.up().await;
    fleet.here().create("old", json!({ "moniker": "echo" })).await;
    input(&fleet, 0).await;
    fleet.here().wait_steps("old", 1).await;

    // Processes that declare the same queues at once may lose a connection to it.
    let before: Vec<_> = fleet.members().map(|member| said(&member.log())).collect();
    let begun = Instant::now();
    broker.close();
    for client in &fleet.clients {
        wait("the gateway notices", || async { lacks_its_queue(client).await.then_some(()) }).await;
    }
    for number in 1..=INPUTS {
        input(&fleet, number).await;
    }
    let posted = Instant::now();
    fleet.there().wait_steps("old", INPUTS + 1).await;
    let took = posted.elapsed();
    assert!(took < APPLIED_MAX, "the inputs were applied after {took:?}");
    begin_and_hold(&fleet).await;
    let (ok, out, err) = fleet.here().cli(&["health", "--json"]).await;
    assert!(!ok && err.contains("degraded"), "{out}{err}");
    wait("all workers have noticed", || async {
        fleet.workers.iter().all(|worker| has_said(worker, &[BROKER])).then_some(())
    })
    .await;
    for client in &fleet.clients {
        assert!(lacks_its_queue(client).await, "all of this was without the broker");
    }

    broker.open();
    fleet.settled().await;
    let away = begun.elapsed();
    input(&fleet, INPUTS + 1).await;
    let steps = fleet.here().wait_steps("old", INPUTS + 2).await;
    assert_chain(&steps);
    let texts: Vec<Value> = steps.iter().map(|step| step["text"].clone()).collect();
    let posted: Vec<Value> = (0..=INPUTS + 1).map(|number| json!(number.to_string())).collect();
    assert_eq!(texts, posted, "each once and in order");
    for (member, before) in fleet.members().zip(&before) {
        assert_rare(member, away, before);
    }
}

/// Posts an input at one gateway or the other.
async fn input(fleet: &Fleet, number: usize) {
    let client = &fleet.clients[number % fleet.clients.len()];
    accept(client, "old", "input", json!({ "text": number.to_string() })).await;
}

/// A session is created, paused and resumed.
async fn begin_and_hold(fleet: &Fleet) {
    let (here, there) = (fleet.here(), fleet.there());
    accept(here, "new", "create", json!({ "moniker": "count", "loop_interval_ms": 50 })).await;
    there.wait_steps("new", 3).await;
    accept(there, "new", "pause", json!({})).await;
    here.wait_status("new", "paused").await;
    let held = here.steps("new").await.len();
    accept(here, "new", "resume", json!({})).await;
    assert_chain(&there.wait_steps("new", held + 3).await);
}

/// An action that must be accepted in time.
async fn accept(client: &Harness, session: &str, kind: &str, payload: Value) {
    let asked = Instant::now();
    client.act(json!({ "type": kind, "session_id": session, "payload": payload })).await;
    let took = asked.elapsed();
    assert!(took < ACCEPTED_MAX, "{kind} was accepted after {took:?}");
}

/// Whether the gateway says that its queue, and nothing else, takes no actions.
async fn lacks_its_queue(client: &Harness) -> bool {
    let Ok(health) = client.try_request(Method::GET, "/health", None).await else { return false };
    let parts = health.body["components"].as_array().cloned().unwrap_or_default();
    !parts.is_empty() && parts.iter().all(|part| (part["name"] == "queue") == (part["ok"] == false))
}
