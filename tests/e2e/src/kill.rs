//! SIGKILL at random moments, again and again, under mixed load. What was accepted is applied
//! exactly once, and history has no gap.

mod client;

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use self::client::{Client, Sent};
use crate::harness::{Harness, assert_chain, wait};
use crate::outside;

const CYCLES: usize = 50;
/// How long a cycle runs at most before it is cut.
const CYCLE_MS_MAX: u64 = 600;

#[tokio::test]
async fn fifty_kills_lose_nothing_and_repeat_nothing() {
    let seed: u64 = std::env::var("E2E_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or_else(rand::random);
    println!("seed {seed}: repeat with E2E_SEED={seed}");
    let mut chance = StdRng::seed_from_u64(seed);
    let mut fleet = Harness::start().await;
    let mut clients: Vec<Client> = (0..6).map(|n| Client::new(n, chance.random())).collect();
    for cycle in 0..CYCLES {
        let cut = Duration::from_millis(chance.random_range(20..CYCLE_MS_MAX));
        let work = futures::future::join_all(clients.iter_mut().map(|client| client.work(&fleet)));
        // The clients never end by themselves; what they had in the air stays in the air.
        assert!(tokio::time::timeout(cut, work).await.is_err());
        fleet.kill();
        if cycle % 10 == 9 {
            let (ok, out, err) = fleet.cli(&["doctor", "--verify-history"]).await;
            assert!(ok, "cycle {cycle}: {out}{err}");
        }
        fleet.up().await;
    }
    settle(&fleet, &mut clients).await;
    for client in &clients {
        check(&fleet, client).await;
    }
    fleet.wait_archived().await;
    let (ok, out, err) = fleet.cli(&["doctor", "--verify-history"]).await;
    assert!(ok, "{out}{err}");
    let sessions: Vec<&str> = clients.iter().map(|client| client.session.as_str()).collect();
    let committed = outside::committed(&fleet, &sessions).await;
    outside::assert_gapless(&fleet.data_dir.join("history"), &committed).await;
    let total: usize = clients.iter().map(|client| client.sent.len()).sum();
    assert!(total > CYCLES, "{total} actions are no load");
    println!("{CYCLES} kills, {total} actions");
}

/// Every action gets its answer, every pause its resume, and all of them end.
async fn settle(fleet: &Harness, clients: &mut [Client]) {
    for client in clients.iter_mut() {
        client.settle(fleet).await;
    }
    for client in clients.iter() {
        for sent in &client.sent {
            fleet.wait_processed(&sent.id).await;
        }
    }
}

async fn check(fleet: &Harness, client: &Client) {
    wait("the session ended", || async { (fleet.status(&client.session).await == "stopped").then_some(()) }).await;
    let steps = fleet.steps(&client.session).await;
    assert_chain(&steps);
    let committed = outside::committed(fleet, &[client.session.as_str()]).await;
    assert_eq!(committed[&client.session], steps.len() as u64, "steps of {}, registry and history", client.session);
    let accepted: &[Sent] = &client.sent;
    for sent in accepted {
        let row = fleet.get(&format!("/api/actions/{}", sent.id)).await;
        assert_eq!(row["processed"], true, "{row}");
        assert_eq!(row["outcome"], "ok", "{row}");
        // The same again: the same answer, and nothing happens.
        let again = fleet.post("/api/actions", &sent.body).await;
        assert_eq!((again.status.as_u16(), &again.body["accepted"]), (202, &json!(false)), "{}", again.body);
    }
    if client.echoes() {
        let said: Vec<&Value> = steps.iter().map(|step| &step["text"]).filter(|text| text.is_string()).collect();
        let asked: Vec<&Value> =
            accepted.iter().filter(|sent| sent.verb == "input").map(|sent| &sent.body["payload"]["text"]).collect();
        assert_eq!(said, asked, "inputs of {} come out once each and in order", client.session);
    }
    let guided: Vec<Value> =
        steps.iter().map(|step| step["guidance"].clone()).filter(|guidance| !guidance.is_null()).collect();
    let given: Vec<Value> = accepted
        .iter()
        .filter(|sent| sent.verb == "interrupt")
        .map(|sent| sent.body["payload"]["guidance"].clone())
        .collect();
    assert_eq!(guided, given, "each guidance of {} is on one step, in order", client.session);
}
