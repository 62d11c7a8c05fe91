//! Shards, workers, health and metrics.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use domain::ports::{Leases, WorkerInfo};
use schemas::id::{Shard, WorkerId};
use schemas::session::SessionStatus;
use serde_json::{Value, json};
use testkit::dice::Dice;
use testkit::unreliable::{FaultRates, Faults, Trace, Unreliable};

use super::world::{OPERATE, SHARDS, World};
use crate::Deps;

fn worker(id: &str) -> WorkerInfo {
    WorkerInfo {
        worker: WorkerId::parse(id).unwrap(),
        host: "box".into(),
        version: "1.0.0".into(),
        roles: vec!["runner".into()],
        draining: false,
        heartbeat_age_ms: 0,
    }
}

async fn own_all(world: &World) {
    let owner = WorkerId::parse("w1").unwrap();
    for shard in (0..SHARDS).map(Shard) {
        world.store.claim(shard, &owner, 3_600_000).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn shards_show_owner_backlog_and_lag() {
    let world = World::new().await;
    for n in 0..5 {
        world.create(&format!("s{n}"), "a1", "echo").await;
    }
    world.commit("s0", 2, SessionStatus::Running).await;
    world.post("/api/sessions/s1/input", json!({"text": "x"})).await;
    let shards = world.get("/api/shards").await.json();
    let sum = |field: &str| shards.as_array().unwrap().iter().map(|shard| shard[field].as_u64().unwrap()).sum::<u64>();
    assert_eq!((shards.as_array().unwrap().len(), sum("backlog"), sum("journal_rows")), (4, 5, 1));
    let owned: Vec<&Value> = shards.as_array().unwrap().iter().filter(|shard| shard["owner"] == "w1").collect();
    assert_eq!((owned.len(), &owned[0]["epoch"]), (1, &json!(1)));
}

#[tokio::test(start_paused = true)]
async fn workers_are_listed_and_drained() {
    let world = World::new().await;
    world.store.heartbeat(&worker("w1")).await.unwrap();
    own_all(&world).await;
    let workers = world.get("/api/workers").await.json();
    assert_eq!((&workers[0]["worker_id"], &workers[0]["shards"]), (&json!("w1"), &json!([0, 1, 2, 3])));
    let drain = "/api/workers/w1/drain";
    assert_eq!(world.post_as(OPERATE, drain, json!({})).await.problem(), "forbidden", "it is not one tenant's own");
    let reply = world.post(drain, json!({})).await;
    assert_eq!((reply.status, reply.json()), (StatusCode::ACCEPTED, json!({"worker_id": "w1", "draining": true})));
    assert_eq!(world.get("/api/workers").await.json()[0]["draining"], true);
    assert_eq!(world.post("/api/workers/none/drain", json!({})).await.problem(), "not_found");
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(world.get("/api/workers").await.json(), json!([]), "without a heartbeat it is gone");
}

#[tokio::test(start_paused = true)]
async fn health_counts_and_needs_no_token() {
    let world = World::new().await;
    own_all(&world).await;
    world.create("s1", "a1", "count").await;
    world.create("s2", "a1", "count").await;
    world.commit("s2", 3, SessionStatus::Completed).await;
    tokio::time::advance(Duration::from_secs(3)).await;
    let reply = world.get_as("", "/health").await;
    let body = reply.json();
    assert_eq!((reply.status, &body["status"], &body["mode"]), (StatusCode::OK, &json!("ok"), &json!("embedded")));
    assert_eq!((&body["live_sessions"], &body["pending_actions"]), (&json!(1), &json!(1)));
    assert_eq!((&body["queue_lag_ms"], &body["journal_lag_rows"]), (&json!(3_000), &json!(1)));
    assert_eq!((&body["shards_owned"], &body["shards"]), (&json!(4), &json!(4)));
    let names: Vec<&str> = body["components"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["store", "archive", "queue"]);
    assert!(!body["provider"].as_str().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_broken_queue_or_an_orphaned_shard_degrades() {
    let world = World::new().await;
    let body = world.get_as("", "/health").await.json();
    assert_eq!(body["status"], "degraded");
    assert!(body["components"][0]["detail"].as_str().unwrap().contains("4 shards have no live owner"), "{body}");
    own_all(&world).await;
    world.queue.outage(Duration::from_secs(60));
    tokio::time::advance(Duration::from_secs(1)).await;
    let reply = world.get_as("", "/health").await;
    let body = reply.json();
    assert_eq!((reply.status, &body["status"]), (StatusCode::OK, &json!("degraded")));
    assert_eq!(body["components"][2]["ok"], false);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_names_the_id_to_repeat_with() {
    let losing = FaultRates { lose_answer: 1.0, ..FaultRates::NONE };
    let faults = Faults::new("gateway", Dice::new(1), losing, Trace::new());
    let healed = faults.clone();
    let change = |deps: Deps| Deps { ledger: Arc::new(Unreliable::new(deps.ledger.clone(), faults)), ..deps };
    let world = World::with(change).await;
    let mut body = json!({"type": "create", "payload": {"moniker": "count"}});
    let reply = world.post("/api/actions", body.clone()).await;
    assert_eq!((reply.status, reply.problem().as_str()), (StatusCode::SERVICE_UNAVAILABLE, "unavailable"));
    let made = world.store.all_actions()[0].action_id.to_string();
    assert!(reply.text.contains(&made), "{}", reply.text);
    healed.heal();
    body["action_id"] = json!(made);
    assert_eq!(world.post("/api/actions", body).await.json()["accepted"], false);
    assert_eq!(world.store.all_sessions().len(), 1, "it acted once");
}

fn broken(change: impl Fn(&mut Deps, Faults)) -> impl FnOnce(Deps) -> Deps {
    move |mut deps| {
        let rates = FaultRates { refuse: 1.0, ..FaultRates::NONE };
        let faults = Faults::new("gateway", Dice::new(1), rates, Trace::new());
        change(&mut deps, faults);
        deps
    }
}

#[tokio::test(start_paused = true)]
async fn a_broken_store_is_not_available() {
    let break_it = |deps: &mut Deps, faults| deps.ledger = Arc::new(Unreliable::new(deps.ledger.clone(), faults));
    let world = World::with(broken(break_it)).await;
    let reply = world.get_as("", "/health").await;
    assert_eq!((reply.status, &reply.json()["status"]), (StatusCode::SERVICE_UNAVAILABLE, &json!("degraded")));
    let reply = world.post("/api/actions", json!({"type": "create", "payload": {"moniker": "count"}})).await;
    assert_eq!((reply.status, reply.problem().as_str()), (StatusCode::SERVICE_UNAVAILABLE, "unavailable"));
    assert_eq!(reply.header("retry-after"), "1");
}

#[tokio::test(start_paused = true)]
async fn a_broken_archive_degrades_and_accepting_goes_on() {
    let break_it = |deps: &mut Deps, faults| deps.archive = Arc::new(Unreliable::new(deps.archive.clone(), faults));
    let world = World::with(broken(break_it)).await;
    let reply = world.get_as("", "/health").await;
    assert_eq!((reply.status, &reply.json()["status"]), (StatusCode::OK, &json!("degraded")));
    world.create("s1", "a1", "count").await;
    world.commit("s1", 3, SessionStatus::Running).await;
    let steps = "/api/agent-steps?session_id=s1";
    assert_eq!(world.get(&format!("{steps}&latest=2")).await.status, StatusCode::OK, "the journal has all of it");
    world.archive_all().await;
    assert_eq!(world.get(&format!("{steps}&latest=2")).await.problem(), "unavailable");
    assert_eq!(world.get(&format!("{steps}&after_iteration=2")).await.status, StatusCode::OK, "there is none");
}

/// A storage that hangs is not waited for without an end.
#[tokio::test(start_paused = true)]
async fn an_archive_that_hangs_is_not_available_in_time() {
    let faults = Faults::none("gateway");
    let hanging = faults.clone();
    let world =
        World::with(|deps| Deps { archive: Arc::new(Unreliable::new(deps.archive.clone(), faults)), ..deps }).await;
    world.create("s1", "a1", "count").await;
    world.commit("s1", 3, SessionStatus::Running).await;
    world.archive_all().await;
    hanging.freeze(Duration::from_secs(3_600));
    for path in ["/api/agent-steps?session_id=s1", "/api/sessions/s1"] {
        let asked = tokio::time::Instant::now();
        let reply = world.get(path).await;
        assert_eq!((reply.status, reply.problem().as_str()), (StatusCode::SERVICE_UNAVAILABLE, "unavailable"));
        assert!(reply.text.contains("/health"), "{}", reply.text);
        assert!(asked.elapsed() <= Duration::from_secs(11), "{path}: {:?}", asked.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn metrics_are_text() {
    let world = World::new().await;
    let reply = world.get("/metrics").await;
    assert_eq!((reply.status, reply.text.as_str()), (StatusCode::OK, "stepfleet_steps_total 7\n"));
    assert!(reply.header("content-type").starts_with("text/plain; version=0.0.4"));
}
