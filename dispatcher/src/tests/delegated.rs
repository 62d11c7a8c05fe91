//! Conversations of calls: nobody joins them, or speaks there or to who works there.

use axum::http::StatusCode;
use domain::ports::{Ledger, Sessions, Verdict};
use schemas::session::SessionStatus;
use serde_json::{Value, json};
use testkit::contract::build::session_id;
use testkit::contract::words::{create_in, turn_id};

use super::docs::assert_documented;
use super::world::{World, key};

const MESSAGES: &str = "/api/conversations/inner/messages";
const PARTICIPANTS: &str = "/api/conversations/inner/participants";

/// A session is created in `inner` as by a commit of `parent`; a guest as by its turn.
async fn called(world: &World, session: &str, parent: &str, is_guest: bool) {
    let mut new = create_in(&format!("create-{session}"), session, "helper", "inner");
    let made = new.session.as_mut().expect("a create has a session");
    made.spec.moniker = "converse".to_owned();
    made.spec.parent = Some(session_id(parent));
    made.added_by_turn_id = is_guest.then(|| turn_id("t1"));
    let verdicts = world.store.accept(vec![new]).await.expect("the ledger takes it");
    assert!(matches!(&verdicts[..], [Verdict::Accepted(_)]), "{verdicts:?}");
}

async fn assert_kept_out(world: &World, operation: &str, path: &str, body: Value) {
    let actions = world.store.all_actions().len();
    let refused = world.post(path, body).await;
    assert_eq!((refused.status, refused.problem().as_str()), (StatusCode::CONFLICT, "conversation_closed"), "{path}");
    assert_documented(operation, "conversation_closed");
    assert_eq!(world.store.all_actions().len(), actions, "nothing was written");
}

#[tokio::test(start_paused = true)]
async fn k_19_nobody_comes_into_the_conversation_of_a_call() {
    let world = World::new().await;
    let caller = world.converse("c1", &["a1"]).await.remove(0);
    called(&world, "child", &caller, false).await;
    world.commit("child", 0, SessionStatus::Running).await;
    let join = "post /api/conversations/{id}/participants";
    let say = "post /api/conversations/{id}/messages";
    let create = json!({"type": "create", "payload": {"moniker": "echo", "conversation_id": "inner"}});
    let namesake =
        json!({"type": "create", "session_id": "inner", "agent_id": "a2", "payload": {"moniker": "converse"}});
    let input = "post /api/sessions/{id}/input";
    for _ in 0..2 {
        assert_kept_out(&world, say, MESSAGES, json!({"text": "hello"})).await;
        for who in [
            json!({"user_id": "ben"}),
            json!({"agent_id": "a2", "moniker": "echo"}),
            json!({"agent_id": "helper", "session_id": "child"}),
        ] {
            assert_kept_out(&world, join, PARTICIPANTS, who).await;
        }
        for body in [&create, &namesake] {
            assert_kept_out(&world, "post /api/actions", "/api/actions", body.clone()).await;
        }
        assert_kept_out(&world, input, "/api/sessions/child/input", json!({"text": "hello"})).await;
        // Who was called may bring others in, and it stays the conversation of the call.
        if world.store.session(&key("guest")).await.unwrap().is_none() {
            called(&world, "guest", "child", true).await;
        }
    }
    let refused = world.post(MESSAGES, json!({"text": "hello"})).await;
    for part in [format!("a call of session {caller}"), "talk in c1 instead".to_owned()] {
        assert!(refused.text.contains(&part), "{part}: {}", refused.text);
    }
    let all = world.get(PARTICIPANTS).await.json();
    assert_eq!(all["items"].as_array().map(Vec::len), Some(2), "{all}");
    assert_eq!(world.get(MESSAGES).await.json()["items"], json!([]), "it can be read");
    world.commit("child", 0, SessionStatus::Completed).await;
    assert_kept_out(&world, say, MESSAGES, json!({"text": "hello"})).await;
}

#[tokio::test(start_paused = true)]
async fn internal_conversations_of_clients_are_theirs() {
    let world = World::new().await;
    let agents = json!([{"agent_id": "a1", "moniker": "echo"}]);
    let body = json!({"conversation_id": "inner", "visibility": "internal", "agents": agents});
    let made = world.post("/api/conversations", body).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    // Whoever is called into it is a guest there.
    called(&world, "guest", "s1", true).await;
    let create = json!({"type": "create", "payload": {"moniker": "echo", "conversation_id": "inner"}});
    for (path, body, status) in [
        (PARTICIPANTS, json!({"user_id": "ben"}), StatusCode::CREATED),
        ("/api/actions", create, StatusCode::ACCEPTED),
        (MESSAGES, json!({"text": "hello"}), StatusCode::ACCEPTED),
    ] {
        let taken = world.post(path, body).await;
        assert_eq!(taken.status, status, "{path}: {}", taken.text);
    }
}
