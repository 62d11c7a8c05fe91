//! `POST /api/actions` and `GET /api/actions/{id}`.

use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use schemas::limits::ACTION_BYTES_MAX;
use schemas::session::SessionStatus;
use serde_json::{Value, json};

use super::world::{ADMIN, World, request};

fn create(session: &str) -> Value {
    json!({"type": "create", "session_id": session, "agent_id": "a1", "payload": {"moniker": "count"}})
}

#[tokio::test(start_paused = true)]
async fn an_action_is_durable_when_it_is_answered() {
    let world = World::new().await;
    let reply = world.post("/api/actions", create("s1")).await;
    assert_eq!(reply.status, StatusCode::ACCEPTED, "{}", reply.text);
    let body = reply.json();
    assert_eq!((&body["session_id"], &body["accepted"]), (&json!("s1"), &json!(true)));
    assert_eq!(world.store.open_actions().len(), 1);
    let view = world.get(&format!("/api/actions/{}", body["action_id"].as_str().unwrap())).await.json();
    assert_eq!((&view["type"], &view["processed"], &view["lane"]), (&json!("create"), &json!(false), &json!("work")));
    assert_eq!((&view["actor"], &view["urgency"]), (&json!(ADMIN), &json!("normal")));
    assert_eq!(view["payload"], json!({"moniker": "count"}));
}

#[tokio::test(start_paused = true)]
async fn fresh_ids_are_ulids() {
    let world = World::new().await;
    let body = world.post("/api/actions", json!({"type": "create", "payload": {"moniker": "count"}})).await.json();
    for field in ["action_id", "session_id"] {
        let id = body[field].as_str().unwrap();
        assert!(id.parse::<ulid::Ulid>().is_ok(), "{id}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_repeat_is_answered_alike_and_another_body_is_refused() {
    let world = World::new().await;
    world.create("s1", "a1", "echo").await;
    let input = json!({"type": "input", "session_id": "s1", "action_id": "act1", "payload": {"text": "hi"}});
    let first = world.post("/api/actions", input.clone()).await;
    let again = world.post("/api/actions", input).await;
    assert_eq!((first.status, again.status), (StatusCode::ACCEPTED, StatusCode::ACCEPTED));
    assert_eq!((&first.json()["accepted"], &again.json()["accepted"]), (&json!(true), &json!(false)));
    assert_eq!(again.json()["session_id"], "s1");
    let other = json!({"type": "input", "session_id": "s1", "action_id": "act1", "payload": {"text": "ho"}});
    let refused = world.post("/api/actions", other).await;
    assert_eq!((refused.status, refused.problem().as_str()), (StatusCode::CONFLICT, "action_conflict"));
    assert_eq!(world.store.all_actions().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_repeated_create_without_ids_finds_its_session() {
    let world = World::new().await;
    let send = || async {
        let body = json!({"type": "create", "payload": {"moniker": "count"}}).to_string();
        let mut request = request(Method::POST, "/api/actions", ADMIN, Body::from(body));
        request.headers_mut().insert("idempotency-key", "key-1".parse().unwrap());
        world.send(request).await.json()
    };
    let (first, again) = (send().await, send().await);
    assert_eq!((&first["action_id"], &first["session_id"]), (&json!("key-1"), &again["session_id"]));
    assert_eq!(world.store.all_sessions().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn creating_a_live_session_again_changes_nothing() {
    let world = World::new().await;
    world.create("s1", "a1", "count").await;
    let reply = world.post("/api/actions", create("s1")).await;
    assert_eq!(reply.status, StatusCode::ACCEPTED);
    assert_eq!(world.store.open_actions().len(), 1, "nothing to do a second time");
    let mut foreign = create("s1");
    foreign["agent_id"] = json!("a2");
    let refused = world.post("/api/actions", foreign).await;
    assert_eq!((refused.status, refused.problem().as_str()), (StatusCode::CONFLICT, "session_exists"));
}

#[tokio::test(start_paused = true)]
async fn refusals_of_the_ledger_are_recorded_and_say_so() {
    let world = World::new().await;
    world.create("s1", "a1", "count").await;
    world.create("s2", "a1", "count").await;
    world.commit("s2", 1, SessionStatus::Completed).await;
    for (body, status, code) in [
        (json!({"type": "pause", "session_id": "none"}), 404, "session_not_found"),
        (json!({"type": "pause", "agent_id": "none"}), 404, "agent_not_found"),
        (json!({"type": "pause", "session_id": "s1", "agent_id": "a2"}), 409, "wrong_agent"),
        (json!({"type": "pause", "session_id": "s2"}), 409, "session_ended"),
        (json!({"type": "input", "session_id": "s2", "payload": {"text": "x"}}), 409, "session_ended"),
        (json!({"type": "input", "session_id": "none", "payload": {"text": "x"}}), 404, "session_not_found"),
        (json!({"type": "input", "session_id": "s1", "agent_id": "a2", "payload": {"text": "x"}}), 409, "wrong_agent"),
        (create("s2"), 409, "session_exists"),
    ] {
        let reply = world.post("/api/actions", body.clone()).await;
        assert_eq!((reply.status.as_u16(), reply.problem().as_str()), (status, code), "{body}");
        let id = reply.json()["action_id"].as_str().expect("it is recorded").to_owned();
        let view = world.get(&format!("/api/actions/{id}")).await.json();
        assert_eq!((&view["processed"], &view["outcome"]), (&json!(true), &json!("rejected")), "{body}");
        assert_eq!(view["code"], code);
    }
    assert_eq!(world.store.open_actions().len(), 1, "nothing was enqueued");
}

#[tokio::test(start_paused = true)]
async fn input_is_refused_where_nobody_would_take_it() {
    let world = World::new().await;
    world.create("s1", "a1", "count").await;
    for target in [json!({"session_id": "s1"}), json!({"agent_id": "a1"})] {
        let mut body = json!({"type": "input", "payload": {"text": "hi"}});
        body.as_object_mut().unwrap().extend(target.as_object().unwrap().clone());
        let reply = world.post("/api/actions", body).await;
        assert_eq!((reply.status, reply.problem().as_str()), (StatusCode::CONFLICT, "input_not_taken"));
        assert!(reply.text.contains("interrupt"), "the remedy is named");
    }
    assert_eq!(world.store.open_actions().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn bad_bodies_are_refused_and_enqueue_nothing() {
    let world = World::new().await;
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    for (body, code) in [
        ("", "invalid_json"),
        ("  \n", "invalid_json"),
        ("{", "invalid_json"),
        ("{\"type\": \"pause\",}", "invalid_json"),
        ("{\"type\": \"pause\"} x", "invalid_json"),
        (deep.as_str(), "invalid_json"),
        ("null", "invalid_request"),
        ("[]", "invalid_request"),
        ("{}", "unknown_type"),
        ("{\"type\": \"pasue\", \"session_id\": \"s\"}", "unknown_type"),
        ("{\"type\": \"create\", \"payload\": {\"moniker\": \"nope\"}}", "unknown_moniker"),
        ("{\"type\": \"pause\", \"session_id\": \"a b\"}", "invalid_request"),
    ] {
        let reply = world.send(request(Method::POST, "/api/actions", ADMIN, Body::from(body.to_owned()))).await;
        assert_eq!((reply.status, reply.problem().as_str()), (StatusCode::BAD_REQUEST, code), "{body}");
    }
    let not_text = Request::post("/api/actions").header("authorization", format!("Bearer {ADMIN}"));
    let reply = world.send(not_text.body(Body::from(vec![0xff, 0xfe, 0x00])).unwrap()).await;
    assert_eq!(reply.problem(), "invalid_json");
    assert!(world.store.all_actions().is_empty());
}

#[tokio::test(start_paused = true)]
async fn every_wrong_field_is_named() {
    let world = World::new().await;
    let body = json!({"type": "create", "sesion_id": "x", "urgency": "asap",
                      "payload": {"moniker": "count", "max_steps": 0, "config": {"until": -1}}});
    let reply = world.post("/api/actions", body).await;
    let (code, mut fields) = reply.refusal();
    fields.sort_unstable();
    assert_eq!(code, "invalid_request");
    assert_eq!(fields, ["payload.config.until", "payload.max_steps", "sesion_id", "urgency"]);
}

#[tokio::test(start_paused = true)]
async fn oversized_bodies_are_refused() {
    let world = World::new().await;
    let body = format!("{{\"type\": \"pause\", \"x\": \"{}\"}}", "y".repeat(ACTION_BYTES_MAX));
    let reply = world.send(request(Method::POST, "/api/actions", ADMIN, Body::from(body))).await;
    assert_eq!((reply.status, reply.problem().as_str()), (StatusCode::PAYLOAD_TOO_LARGE, "too_large"));
    let fits =
        json!({"type": "create", "payload": {"moniker": "count", "state": {"x": "y".repeat(ACTION_BYTES_MAX - 200)}}});
    assert_eq!(world.post("/api/actions", fits).await.status, StatusCode::ACCEPTED);
}

#[tokio::test(start_paused = true)]
async fn any_content_type_is_taken() {
    let world = World::new().await;
    for media_type in ["application/x-www-form-urlencoded", "text/plain", "nonsense"] {
        let mut request = request(Method::POST, "/api/actions", ADMIN, Body::from(create("s1").to_string()));
        request.headers_mut().insert("content-type", media_type.parse().unwrap());
        assert_eq!(world.send(request).await.status, StatusCode::ACCEPTED, "{media_type}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_action_is_not_found() {
    let world = World::new().await;
    let reply = world.get("/api/actions/none").await;
    assert_eq!((reply.status, reply.problem().as_str()), (StatusCode::NOT_FOUND, "action_not_found"));
    for hostile in ["a%20b", "%27%3B--", "%00", "%FF", "x".repeat(129).as_str(), "%E2%82%AC"] {
        let reply = world.get(&format!("/api/actions/{hostile}")).await;
        assert_eq!(reply.problem(), "invalid_request", "{hostile}");
    }
}

#[tokio::test(start_paused = true)]
async fn tool_results_reach_the_session() {
    let world = World::new().await;
    world.create("s1", "a1", "echo").await;
    let body = json!({"session_id": "s1", "operation_id": "op1", "result": {"x": 1}});
    let reply = world.post("/api/tool-results", body).await;
    assert_eq!(reply.status, StatusCode::ACCEPTED, "{}", reply.text);
    let view = world.get(&format!("/api/actions/{}", reply.json()["action_id"].as_str().unwrap())).await.json();
    assert_eq!((&view["type"], &view["payload"]["operation_id"]), (&json!("tool_result"), &json!("op1")));
    let refused = world.post("/api/tool-results", json!({"operation_id": "op1"})).await;
    assert_eq!(refused.refusal().1, ["payload.result"], "the operation knows its session");
}
