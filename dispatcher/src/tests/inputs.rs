//! Inputs of sessions that converse: what they may say of messages.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::world::World;

const PATH: &str = "/api/conversations/c1/messages";

/// A refusal before anything was written, which names the field.
async fn assert_refused(world: &World, path: &str, payload: Value, field: &str) {
    let before = world.store.all_actions().len();
    let refused = world.post(path, payload).await;
    assert_eq!((refused.status.as_u16(), refused.problem().as_str()), (400, "invalid_request"), "{}", refused.text);
    assert!(refused.json()["detail"].as_str().is_some_and(|detail| detail.starts_with(field)), "{}", refused.text);
    assert_eq!(world.store.all_actions().len(), before);
}

#[tokio::test(start_paused = true)]
async fn an_input_is_about_a_message_that_was_said_in_its_conversation() {
    let world = World::new().await;
    let session = world.converse("c1", &["a1"]).await.remove(0);
    world.converse("c2", &["a2"]).await;
    for (path, id) in [(PATH, "m1"), ("/api/conversations/c2/messages", "m2")] {
        let posted = world.post(path, json!({"text": "hello", "message_id": id})).await;
        assert_eq!(posted.status, StatusCode::ACCEPTED, "{}", posted.text);
    }
    let paths = [format!("/api/sessions/{session}/input"), "/api/agents/a1/input".to_owned()];
    for path in &paths {
        for id in [json!("my-1"), json!("m2"), json!("a b"), json!(7), json!("")] {
            assert_refused(&world, path, json!({"text": "hi", "message_id": id}), "payload.message_id").await;
        }
        let taken = world.post(path, json!({"text": "hi", "message_id": "m1"})).await;
        assert_eq!(taken.status, StatusCode::ACCEPTED, "{}", taken.text);
        let taken = world.post(path, json!({"text": "hi", "message_id": null})).await;
        assert_eq!(taken.status, StatusCode::ACCEPTED, "{}", taken.text);
    }
}

#[tokio::test(start_paused = true)]
async fn what_becomes_of_a_message_is_not_said_of_an_input() {
    let world = World::new().await;
    let session = world.converse("c1", &["a1"]).await.remove(0);
    let path = format!("/api/sessions/{session}/input");
    for busy in ["steer", "reject", "enqueue"] {
        assert_refused(&world, &path, json!({"text": "hi", "busy": busy}), "payload.busy").await;
    }
    let refused = world.post(&path, json!({"text": "hi", "busy": "steer"})).await;
    assert!(refused.text.contains("POST /api/conversations/c1/messages"), "{}", refused.text);
    let taken = world.post(PATH, json!({"text": "hi", "busy": "steer"})).await;
    assert_eq!(taken.status, StatusCode::ACCEPTED, "{}", taken.text);
}

#[tokio::test(start_paused = true)]
async fn to_other_sessions_such_fields_mean_what_they_like() {
    let world = World::new().await;
    world.create("e1", "a1", "echo").await;
    let payload = json!({"text": "hi", "message_id": "my-1", "busy": "steer"});
    let taken = world.post("/api/sessions/e1/input", payload.clone()).await;
    assert_eq!(taken.status, StatusCode::ACCEPTED, "{}", taken.text);
    // A session that is not there may be one that converses by the time it is.
    let count = world.store.all_actions().len();
    let body = json!({"type": "input", "session_id": "s1", "payload": payload});
    let refused = world.post("/api/actions", body).await;
    assert_eq!((refused.status.as_u16(), refused.problem().as_str()), (404, "session_not_found"), "{}", refused.text);
    assert_eq!(world.store.all_actions().len(), count, "nothing was written");
}
