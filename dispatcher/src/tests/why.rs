//! `GET /api/sessions/{id}/why`, from real rows.

use schemas::session::SessionStatus;
use serde_json::json;

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
