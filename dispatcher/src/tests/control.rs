//! The short forms by session and by agent.

use axum::body::Body;
use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

use super::world::{ADMIN, World, request};

async fn view(world: &World, reply: &super::world::Reply) -> Value {
    assert_eq!(reply.status, StatusCode::ACCEPTED, "{}", reply.text);
    world.get(&format!("/api/actions/{}", reply.json()["action_id"].as_str().unwrap())).await.json()
}

#[tokio::test(start_paused = true)]
async fn the_path_names_verb_and_session() {
    let world = World::new().await;
    world.create("s1", "a1", "echo").await;
    for (verb, body, payload) in [
        ("input", json!({"text": "hi"}), json!({"text": "hi"})),
        ("interrupt", json!({"guidance": {"a": 1}, "mode": "now"}), json!({"guidance": {"a": 1}, "mode": "now"})),
        ("pause", json!({"reason": "deploy"}), json!({"reason": "deploy"})),
        ("resume", json!({}), json!({})),
        ("destroy", json!({"payload": {"reason": "over"}}), json!({"reason": "over"})),
    ] {
        let reply = world.post(&format!("/api/sessions/s1/{verb}"), body).await;
        let view = view(&world, &reply).await;
        assert_eq!((&view["type"], &view["payload"], &view["session_id"]), (&json!(verb), &payload, &json!("s1")));
    }
}

#[tokio::test(start_paused = true)]
async fn by_agent_it_is_the_newest_session() {
    let world = World::new().await;
    world.create("old", "a1", "echo").await;
    tokio::time::advance(std::time::Duration::from_millis(5)).await;
    world.create("new", "a1", "echo").await;
    for (verb, body) in [
        ("input", json!({"text": "hi"})),
        ("interrupt", json!({"guidance": {}})),
        ("pause", json!({"actor": "ana"})),
        ("resume", json!({})),
        ("destroy", json!({})),
    ] {
        let reply = world.post(&format!("/api/agents/a1/{verb}"), body).await;
        let view = view(&world, &reply).await;
        assert_eq!((&view["session_id"], &view["type"]), (&json!("new"), &json!(verb)));
        assert_eq!(view["actor"], if verb == "pause" { "ana" } else { ADMIN });
    }
    let reply = world.post("/api/agents/nobody/pause", json!({})).await;
    assert_eq!((reply.status.as_u16(), reply.problem().as_str()), (404, "agent_not_found"));
}

#[tokio::test(start_paused = true)]
async fn a_body_may_be_empty_where_nothing_is_needed() {
    let world = World::new().await;
    world.create("s1", "a1", "echo").await;
    for verb in ["pause", "resume", "destroy"] {
        let reply = world.send(request(Method::POST, &format!("/api/sessions/s1/{verb}"), ADMIN, Body::empty())).await;
        assert_eq!(reply.status, StatusCode::ACCEPTED, "{}", reply.text);
    }
    let reply = world.send(request(Method::POST, "/api/sessions/s1/interrupt", ADMIN, Body::empty())).await;
    assert_eq!(reply.refusal().1, ["payload.guidance"]);
    let reply = world.send(request(Method::POST, "/api/sessions/s1/input", ADMIN, Body::empty())).await;
    assert_eq!(reply.refusal().1, ["payload"]);
}

#[tokio::test(start_paused = true)]
async fn the_idempotency_key_makes_repeats_harmless() {
    let world = World::new().await;
    world.create("s1", "a1", "echo").await;
    let send = |body: Value| {
        let mut request = request(Method::POST, "/api/sessions/s1/input", ADMIN, Body::from(body.to_string()));
        request.headers_mut().insert("idempotency-key", "k1".parse().unwrap());
        world.send(request)
    };
    assert_eq!(send(json!({"text": "hi"})).await.json()["accepted"], true);
    assert_eq!(send(json!({"text": "hi"})).await.json()["accepted"], false);
    assert_eq!(send(json!({"text": "ho"})).await.problem(), "action_conflict");
    let contradiction = send(json!({"text": "hi", "action_id": "k2"})).await;
    assert_eq!(contradiction.refusal().1, ["action_id"]);
}

#[tokio::test(start_paused = true)]
async fn hostile_ids_in_paths_are_refused() {
    let world = World::new().await;
    for bad in ["a%20b", "a%27b", "a%22b", "%C3%BC", "a%2Fb", "a%00b", "%FF%FE", &"x".repeat(129)] {
        for path in [format!("/api/sessions/{bad}/pause"), format!("/api/agents/{bad}/pause")] {
            let reply = world.post(&path, json!({})).await;
            assert_eq!(
                (reply.status.as_u16(), reply.refusal()),
                (400, ("invalid_request".into(), vec!["id".into()])),
                "{path}"
            );
        }
    }
    assert!(world.store.all_actions().is_empty());
}
