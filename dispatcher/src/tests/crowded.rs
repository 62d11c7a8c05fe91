//! Sessions that have as many turns as they take.

use axum::http::StatusCode;
use schemas::conversation::Talk;
use schemas::limits::{METADATA_BYTES_MAX, SESSION_TURNS_MAX};
use schemas::session::SessionStatus;
use serde_json::{Value, json};

use super::docs::assert_documented;
use super::turns::turn;
use super::world::{Reply, World};

const PATH: &str = "/api/conversations/c1/messages";

/// A world with a session that converses in `c1`.
async fn talking() -> (World, String) {
    let world = World::new().await;
    let agent = json!({"agent_id": "a1", "moniker": "converse", "config": {"system_prompt": "Be brief."}});
    let body = json!({"conversation_id": "c1", "agents": [agent]});
    let reply = world.post("/api/conversations", body).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text);
    let session = reply.json()["started"][0]["session_id"].as_str().expect("a session").to_owned();
    world.commit(&session, 0, SessionStatus::Running).await;
    (world, session)
}

/// The session begins so many turns, and takes up what has waited.
async fn begin(world: &World, session: &str, turns: usize) {
    let turns = (0..turns).map(|n| turn(&format!("t{n}"), session, &format!("m-{n}"))).collect();
    world.speak(session, Talk { turns, ..Talk::default() }).await;
}

fn input(session: &str, payload: Value) -> Value {
    json!({"type": "input", "session_id": session, "payload": payload})
}

fn is_too_many(reply: &Reply) -> bool {
    (reply.status.as_u16(), reply.problem().as_str()) == (429, "too_many_requests")
}

#[tokio::test(start_paused = true)]
async fn a_session_with_too_many_turns_gets_no_more() {
    let (world, session) = talking().await;
    let before = json!({"text": "hello", "message_id": "m1"});
    let first = world.post(PATH, before.clone()).await.json();
    let own = json!({"type": "input", "session_id": session, "action_id": "i1", "payload": {"text": "hi"}});
    assert_eq!(world.post("/api/actions", own.clone()).await.status, StatusCode::ACCEPTED);
    begin(&world, &session, SESSION_TURNS_MAX).await;
    let (waiting, said) = (world.open().len(), world.get(PATH).await.json()["items"].as_array().unwrap().len());
    for body in [json!({"text": "more"}), json!({"text": "more", "message_id": "m2"})] {
        let refused = world.post(PATH, body).await;
        assert!(is_too_many(&refused), "{}", refused.text);
        assert_documented("post /api/conversations/{id}/messages", "too_many_requests");
    }
    let refused = world.post("/api/actions", input(&session, json!({"text": "more"}))).await;
    assert!(is_too_many(&refused), "{}", refused.text);
    let refused = world.post(&format!("/api/sessions/{session}/input"), json!({"text": "more"})).await;
    assert!(is_too_many(&refused), "{}", refused.text);
    assert_eq!(world.open().len(), waiting, "nothing was written");
    assert_eq!(world.get(PATH).await.json()["items"].as_array().unwrap().len(), said);

    let again = world.post(PATH, before).await.json();
    assert_eq!(again["responders"][0]["turn_id"], first["responders"][0]["turn_id"], "a repeat is no new one");
    assert_eq!(world.post("/api/actions", own).await.json()["accepted"], false);
    let told = world.post(PATH, json!({"text": "by the way", "busy": "steer"})).await;
    assert_eq!(told.status, StatusCode::ACCEPTED, "it joins the turns that there are: {}", told.text);
}

#[tokio::test(start_paused = true)]
async fn inputs_that_wait_count_as_the_turns_that_they_become() {
    let (world, session) = talking().await;
    begin(&world, &session, SESSION_TURNS_MAX - 2).await;
    for text in ["one", "two"] {
        let taken = world.post(PATH, json!({ "text": text })).await;
        assert_eq!(taken.status, StatusCode::ACCEPTED, "{}", taken.text);
    }
    assert!(is_too_many(&world.post(PATH, json!({"text": "three"})).await));
    assert!(is_too_many(&world.post("/api/actions", input(&session, json!({"text": "three"}))).await));
}

#[tokio::test(start_paused = true)]
async fn metadata_of_an_input_is_bounded_where_its_turn_keeps_it() {
    let (world, session) = talking().await;
    world.create("e1", "a2", "echo").await;
    let payload = json!({"text": "x", "metadata": {"k": "x".repeat(METADATA_BYTES_MAX)}});
    let refused = world.post("/api/actions", input(&session, payload.clone())).await;
    assert_eq!((refused.status.as_u16(), refused.problem().as_str()), (400, "invalid_request"), "{}", refused.text);
    assert!(refused.json()["detail"].as_str().is_some_and(|detail| detail.contains("payload.metadata")));
    let taken = world.post("/api/actions", input("e1", payload)).await;
    assert_eq!(taken.status, StatusCode::ACCEPTED, "to others it may mean anything: {}", taken.text);
}
