//! `GET /api/sessions/{id}/why`, from real rows.

use axum::http::StatusCode;
use schemas::conversation::{Operation, OperationKind, Talk};
use schemas::json::Json;
use schemas::session::{Cause, SessionStatus};
use serde_json::json;
use testkit::contract::Ports;
use testkit::contract::build::{with_head, worker};

use super::operations::operation;
use super::world::World;

#[tokio::test(start_paused = true)]
async fn a_session_without_a_worker_says_so() {
    let world = World::new().await;
    world.create("s1", "a1", "count").await;
    let why = world.get("/api/sessions/s1/why").await.json();
    assert_eq!((&why["status"], &why["session_id"]), (&json!("starting"), &json!("s1")));
    assert_eq!(why["chain"][0]["what"], "action");
    assert!(why["chain"][1]["detail"].as_str().unwrap().contains("has no owner"), "{why}");
    assert!(why["remedy"].as_str().unwrap().contains("Start a worker"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn pending_control_is_part_of_the_chain() {
    let world = World::new().await;
    world.create("s1", "a1", "count").await;
    world.commit("s1", 1, SessionStatus::Running).await;
    world.post("/api/sessions/s1/pause", json!({"actor": "ana"})).await;
    let why = world.get("/api/sessions/s1/why").await.json();
    let chain: Vec<&str> = why["chain"].as_array().unwrap().iter().map(|link| link["what"].as_str().unwrap()).collect();
    assert_eq!(chain, ["step", "shard", "action"]);
    assert!(why["chain"][1]["detail"].as_str().unwrap().contains("worker w1"), "{why}");
    assert!(why["chain"][2]["detail"].as_str().unwrap().contains("by ana"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn an_ended_session_says_how() {
    let world = World::new().await;
    world.create("s1", "a1", "count").await;
    world.commit("s1", 1, SessionStatus::Completed).await;
    let why = world.get("/api/sessions/s1/why").await.json();
    assert_eq!(why["chain"][0]["what"], "ended");
    assert!(why["summary"].as_str().unwrap().contains("because it was done"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_another_session_is_told_what_that_one_waits_for() {
    let world = World::new().await;
    let caller = world.converse("c1", &["a1"]).await.remove(0);
    world.create("child", "a2", "count").await;
    world.commit("child", 1, SessionStatus::Running).await;
    world.post("/api/sessions/child/pause", json!({"actor": "ana"})).await;
    let request = Json::of(&json!({"target_type": "agent", "session_id": "child"}));
    let call = Operation { request, ..operation("o1", &caller, OperationKind::Agent) };
    // The session waits for it from now on.
    let (ports, owner) = (Ports::of(world.store.clone()), worker("w1"));
    let said = ports.saying(&owner, &caller, Talk { operations: vec![call], ..Talk::default() }).await;
    let waits = with_head(said, |head| {
        head.cause = Cause::Operation;
        head.wake_at_ms = None;
    });
    ports.commit_one(&owner, waits).await;
    let why = world.get(&format!("/api/sessions/{caller}/why")).await.json();
    let chain = why["chain"].as_array().unwrap();
    let told: Vec<(&str, &str)> =
        chain.iter().map(|link| (link["session_id"].as_str().unwrap_or("-"), link["what"].as_str().unwrap())).collect();
    let of_child = ["session", "step", "shard", "action"].map(|what| ("child", what));
    assert_eq!((told[0], &told[1..]), (("-", "operation"), &of_child[..]), "{why}");
    assert!(why["summary"].as_str().unwrap().contains("Session child is at the end of the chain"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn who_asks_about_a_conversation_is_told_where_its_sessions_stand() {
    let world = World::new().await;
    let sessions = world.converse("c1", &["a1", "a2"]).await;
    world.commit(&sessions[0], 0, SessionStatus::Completed).await;
    let told = world.get("/api/sessions/c1/why").await;
    assert_eq!(told.problem(), "session_not_found");
    let detail = told.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.starts_with("c1 is a conversation; ask about one of its sessions. "), "{detail}");
    for session in &sessions {
        let why = world.get(&format!("/api/sessions/{session}/why")).await.json();
        let stands = format!("{session}: {}", why["summary"].as_str().unwrap());
        assert!(detail.contains(&stands), "{stands}: {detail}");
    }
    // Nobody's session takes part, and no conversation either.
    let body = json!({"conversation_id": "c2", "users": [{"user_id": "ana"}]});
    assert_eq!(world.post("/api/conversations", body).await.status, StatusCode::CREATED);
    let told = world.get("/api/sessions/c2/why").await.json();
    assert!(told["detail"].as_str().unwrap().contains("that no session takes part in"), "{told}");
    let told = world.get("/api/sessions/c3/why").await.json();
    assert!(told["detail"].as_str().unwrap().starts_with("There is no session c3."), "{told}");
}
