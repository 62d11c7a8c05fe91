//! `POST /api/actions` and `GET /api/actions/{id}`.

use axum::body::Body;
use axum::http::{Method, StatusCode};
use schemas::limits::{ACTION_BYTES_MAX, JSON_DEPTH_MAX};
use schemas::session::SessionStatus;
use serde_json::{Value, json};

use super::docs::assert_documented;
use super::world::{ADMIN, World, request};

/// Of a body that a failed test shows.
const SHOWN: usize = 200;

/// What a refusal must say, and what must be left of it.
struct Said {
    status: u16,
    code: &'static str,
    /// The field that is named, and no other. Empty: none is.
    field: &'static str,
    /// Part of what to do instead.
    remedy: &'static str,
    /// Whether the ledger has a row of it.
    is_recorded: bool,
}

fn recorded(status: u16, code: &'static str, field: &'static str, remedy: &'static str) -> Said {
    Said { status, code, field, remedy, is_recorded: true }
}

/// Refused before the ledger sees it.
fn unseen(status: u16, code: &'static str, field: &'static str, remedy: &'static str) -> Said {
    Said { status, code, field, remedy, is_recorded: false }
}

fn invalid(field: &'static str, remedy: &'static str) -> Said {
    unseen(400, "invalid_request", field, remedy)
}

/// Sends a body under a key by which the ledger would have it, and looks at the whole refusal.
async fn assert_refused(world: &World, key: &str, body: &[u8], said: &Said) {
    let shown = String::from_utf8_lossy(&body[..body.len().min(SHOWN)]).into_owned();
    let mut request = request(Method::POST, "/api/actions", ADMIN, Body::from(body.to_vec()));
    request.headers_mut().insert("idempotency-key", key.parse().unwrap());
    let reply = world.send(request).await;
    let (code, fields) = reply.refusal();
    assert_eq!((reply.status.as_u16(), code.as_str()), (said.status, said.code), "{shown}: {}", reply.text);
    assert_documented("post /api/actions", &code);
    let named: Vec<&str> = [said.field].into_iter().filter(|field| !field.is_empty()).collect();
    assert_eq!(fields, named, "{shown}: {}", reply.text);
    let problem = reply.json();
    let mut texts = vec![&problem["detail"]];
    texts.extend(problem["errors"].as_array().into_iter().flatten().map(|error| &error["message"]));
    for text in texts {
        assert!(text.as_str().is_some_and(|text| text.contains(said.remedy)), "{shown}: {}", reply.text);
    }
    let row = world.get(&format!("/api/actions/{key}")).await;
    if said.is_recorded {
        assert_eq!(problem["action_id"], key, "{shown}");
        let row = row.json();
        assert_eq!((&row["processed"], &row["outcome"]), (&json!(true), &json!("rejected")), "{shown}");
        assert_eq!(row["code"], said.code, "{shown}");
    } else {
        assert_eq!(problem["action_id"], Value::Null, "{shown}");
        assert_eq!(row.problem(), "action_not_found", "{shown}");
    }
}

/// Arrays in arrays.
fn nested(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

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
    assert_eq!(refused.refusal().1, ["action_id"]);
    let problem = refused.json();
    assert!(problem["errors"][0]["message"].as_str().unwrap().contains("Use a fresh action_id"), "{problem}");
    assert_eq!(problem["action_id"], Value::Null, "the row of that id is the first one's");
    assert_eq!(world.get("/api/actions/act1").await.json()["payload"], json!({"text": "hi"}));
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
    let open = world.store.open_actions().len();
    for (target, said) in [
        (json!({"session_id": "none"}), recorded(404, "session_not_found", "session_id", "GET /api/sessions lists")),
        (json!({"agent_id": "none"}), recorded(404, "agent_not_found", "agent_id", "GET /api/agents lists")),
        (
            json!({"session_id": "s1", "agent_id": "a2"}),
            recorded(409, "wrong_agent", "agent_id", "Send the agent_id of the session, or leave agent_id out"),
        ),
        (json!({"session_id": "s2"}), recorded(409, "session_ended", "session_id", "takes no actions")),
    ] {
        for (verb, payload) in [
            ("pause", json!({})),
            ("resume", json!({})),
            ("destroy", json!({})),
            ("interrupt", json!({"guidance": {"set": 5}})),
            ("input", json!({"text": "x"})),
        ] {
            let mut body = target.clone();
            body["type"] = json!(verb);
            body["payload"] = payload;
            let key = format!("{verb}-{}", said.code);
            assert_refused(&world, &key, body.to_string().as_bytes(), &said).await;
        }
    }
    let said = recorded(409, "session_exists", "session_id", "Choose another session_id, or leave it out");
    assert_refused(&world, "again", create("s2").to_string().as_bytes(), &said).await;
    assert_eq!(world.store.open_actions().len(), open, "nothing was enqueued");
}

#[tokio::test(start_paused = true)]
async fn what_conversations_do_not_take_is_recorded_too() {
    let world = World::new().await;
    world.converse("c1", &["a1"]).await;
    let done = world.patch("/api/conversations/c1", json!({"status": "completed"})).await;
    assert_eq!(done.status, StatusCode::OK, "{}", done.text);
    let late = json!({"type": "create", "payload": {"moniker": "echo", "conversation_id": "c1"}});
    let said = recorded(409, "conversation_closed", "", "conversation");
    assert_refused(&world, "late", late.to_string().as_bytes(), &said).await;
    let result = json!({"type": "tool_result", "payload": {"operation_id": "none", "result": 1}});
    let said = recorded(409, "no_open_operation", "", "operation");
    assert_refused(&world, "result", result.to_string().as_bytes(), &said).await;
    assert!(world.store.open_actions().is_empty(), "nothing was enqueued");
}

#[tokio::test(start_paused = true)]
async fn input_is_refused_where_nobody_would_take_it() {
    let world = World::new().await;
    world.create("s1", "a1", "count").await;
    let said = unseen(409, "input_not_taken", "type", "guidance with interrupt");
    for (key, mut body) in [("by-session", json!({"session_id": "s1"})), ("by-agent", json!({"agent_id": "a1"}))] {
        body["type"] = json!("input");
        body["payload"] = json!({"text": "hi"});
        assert_refused(&world, key, body.to_string().as_bytes(), &said).await;
    }
    assert_eq!(world.store.open_actions().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn bodies_that_are_no_json_are_refused_and_enqueue_nothing() {
    let world = World::new().await;
    let deep = nested(200);
    let cases: [(&[u8], &'static str); 7] = [
        (b"", "send a JSON object"),
        (b"  \n", "send a JSON object"),
        (b"{", "Send one JSON object"),
        (b"{\"type\": \"pause\",}", "line 1 column 18. Send one JSON object"),
        (b"{\"type\": \"pause\"} x", "line 1 column 19. Send one JSON object"),
        (b"\xff\xfe\x00", "line 1 column 1. Send one JSON object"),
        (deep.as_bytes(), "Send one JSON object"),
    ];
    for (nth, (body, remedy)) in cases.into_iter().enumerate() {
        assert_refused(&world, &format!("bytes-{nth}"), body, &unseen(400, "invalid_json", "", remedy)).await;
    }
    assert!(world.store.all_actions().is_empty());
}

#[tokio::test(start_paused = true)]
async fn json_is_taken_up_to_a_depth() {
    let world = World::new().await;
    let said = invalid("body", "send flatter data");
    assert_refused(&world, "list", nested(JSON_DEPTH_MAX + 1).as_bytes(), &said).await;
    // Body, payload and state are levels, too.
    let create = |depth: usize| {
        let inner: Value = serde_json::from_str(&nested(depth - 3)).unwrap();
        json!({"type": "create", "payload": {"moniker": "count", "state": {"x": inner}}})
    };
    assert_refused(&world, "state", create(JSON_DEPTH_MAX + 1).to_string().as_bytes(), &said).await;
    assert!(world.store.all_actions().is_empty());
    let fits = world.post("/api/actions", create(JSON_DEPTH_MAX)).await;
    assert_eq!(fits.status, StatusCode::ACCEPTED, "{}", fits.text);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_known_or_of_a_wrong_type_is_named() {
    let world = World::new().await;
    let create = |payload: Value| json!({"type": "create", "payload": payload});
    let pause = |field: &str, value: Value| {
        let mut body = json!({"type": "pause", "session_id": "s1"});
        body[field] = value;
        body
    };
    for (nth, (body, said)) in [
        (Value::Null, invalid("body", "must be a JSON object such as")),
        (json!([]), invalid("body", "must be a JSON object such as")),
        (json!("pause"), invalid("body", "must be a JSON object such as")),
        (json!({}), unseen(400, "unknown_type", "type", "send one of create, input")),
        (pause("type", json!("pasue")), unseen(400, "unknown_type", "type", "did you mean \"pause\"?")),
        (pause("type", json!("explode")), unseen(400, "unknown_type", "type", "is none of create, input")),
        (pause("type", json!(7)), invalid("type", "must be a string")),
        (pause("session_id", json!(7)), invalid("session_id", "must be a string")),
        (pause("agent_id", json!(["a1"])), invalid("agent_id", "must be a string")),
        (pause("payload", json!("now")), invalid("payload", "must be an object")),
        (pause("urgency", json!("asap")), invalid("urgency", "is none of low, normal, high")),
        (json!({"type": "pause"}), invalid("session_id", "pause needs session_id, or agent_id")),
        (create(json!({})), invalid("payload.moniker", "create needs one of")),
        (create(json!({"moniker": "nope"})), unseen(400, "unknown_moniker", "payload.moniker", "is none of")),
        (create(json!({"moniker": 7})), invalid("payload.moniker", "must be a string")),
        (create(json!({"moniker": "count", "max_steps": -1})), invalid("payload.max_steps", "a whole number from 1")),
        (create(json!({"moniker": "count", "config": [1]})), invalid("payload.config", "must be an object")),
        (create(json!({"moniker": "count", "monikr": 1})), invalid("payload.monikr", "did you mean \"moniker\"?")),
    ]
    .into_iter()
    .enumerate()
    {
        assert_refused(&world, &format!("wrong-{nth}"), body.to_string().as_bytes(), &said).await;
    }
    assert!(world.store.all_actions().is_empty());
}

#[tokio::test(start_paused = true)]
async fn ids_have_a_length_and_an_alphabet() {
    let world = World::new().await;
    let long = "x".repeat(129);
    for field in ["session_id", "agent_id", "action_id"] {
        for (nth, (id, remedy)) in [
            ("", "send letters, digits and . _ : -"),
            (long.as_str(), "at most 128 are allowed"),
            ("a b", "allowed are letters, digits and . _ : -"),
            ("a/b", "allowed are letters, digits and . _ : -"),
            ("a'b", "allowed are letters, digits and . _ : -"),
            ("a\" OR 1=1 --", "allowed are letters, digits and . _ : -"),
            ("a\u{0}b", "allowed are letters, digits and . _ : -"),
            ("\u{fc}mlaut", "allowed are letters, digits and . _ : -"),
            ("\u{1f600}", "allowed are letters, digits and . _ : -"),
        ]
        .into_iter()
        .enumerate()
        {
            let mut body = json!({"type": "pause", "session_id": "s1"});
            body[field] = json!(id);
            let key = format!("{field}-{nth}");
            assert_refused(&world, &key, body.to_string().as_bytes(), &invalid(field, remedy)).await;
        }
    }
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
    let said = unseen(413, "too_large", "", "send a path or URL instead");
    assert_refused(&world, "large", body.as_bytes(), &said).await;
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
