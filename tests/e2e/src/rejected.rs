//! Input that must be refused: named, explained, recorded where it was an action, and harmless.

use reqwest::{Client, Method};
use schemas::limits::{ACTION_BYTES_MAX, JSON_DEPTH_MAX};
use serde_json::{Value, json};

use crate::harness::Harness;

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

/// An oversized body ends its connection, so each request has one of its own.
fn client() -> Client {
    Client::builder().no_proxy().pool_max_idle_per_host(0).build().unwrap()
}

/// Sends a body under a key by which the ledger would have it, and looks at the whole refusal.
async fn assert_refused(fleet: &Harness, http: &Client, key: &str, body: Vec<u8>, said: &Said) {
    let shown = String::from_utf8_lossy(&body[..body.len().min(SHOWN)]).into_owned();
    let request = http.post(format!("{}/api/actions", fleet.base_url)).bearer_auth(&fleet.token);
    let request = request.header("content-type", "application/json").header("idempotency-key", key);
    let answer = request.body(body).send().await.unwrap();
    let status = answer.status().as_u16();
    assert_eq!(answer.headers()["content-type"], "application/problem+json", "{shown}");
    let problem: Value = answer.json().await.unwrap();
    assert_eq!((status, problem["code"].as_str()), (said.status, Some(said.code)), "{shown}: {problem}");
    let errors: Vec<&Value> = problem["errors"].as_array().into_iter().flatten().collect();
    let fields: Vec<&str> = errors.iter().filter_map(|error| error["field"].as_str()).collect();
    let named: Vec<&str> = [said.field].into_iter().filter(|field| !field.is_empty()).collect();
    assert_eq!(fields, named, "{shown}: {problem}");
    let texts = errors.iter().map(|error| &error["message"]).chain([&problem["detail"]]);
    for text in texts {
        assert!(text.as_str().is_some_and(|text| text.contains(said.remedy)), "{shown}: {problem}");
    }
    // A refusal that is recorded says so, and can be looked up.
    assert_eq!(problem["action_id"].as_str(), said.is_recorded.then_some(key), "{shown}: {problem}");
    let path = format!("/api/actions/{key}");
    let row = fleet.try_request(Method::GET, &path, None).await.expect("an answer").body;
    if said.is_recorded {
        assert_eq!((&row["outcome"], &row["code"]), (&json!("rejected"), &json!(said.code)), "{shown}: {row}");
        assert_eq!(row["processed"], true, "{shown}: {row}");
    } else {
        assert_eq!(row["code"], "action_not_found", "{shown}: {row}");
    }
}

/// Arrays in arrays.
fn nested(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

/// What no body may be, whatever sessions there are.
fn malformed() -> Vec<(Value, Said)> {
    let create = |payload: Value| json!({ "type": "create", "payload": payload });
    let pause = |field: &str, value: Value| {
        let mut body = json!({ "type": "pause", "session_id": "there" });
        body[field] = value;
        body
    };
    let alphabet = "allowed are letters, digits and . _ : -";
    vec![
        (pause("type", json!("explode")), unseen(400, "unknown_type", "type", "is none of create, input")),
        (json!({ "session_id": "there" }), unseen(400, "unknown_type", "type", "send one of create, input")),
        (pause("type", json!(7)), invalid("type", "must be a string")),
        (create(json!({ "moniker": "tell_a_lie" })), unseen(400, "unknown_moniker", "payload.moniker", "did you mean")),
        (create(json!({ "moniker": 7 })), invalid("payload.moniker", "must be a string")),
        (create(json!({ "moniker": "count", "max_steps": -1 })), invalid("payload.max_steps", "a whole number from 1")),
        (
            create(json!({ "moniker": "count", "config": { "until": "ten" } })),
            invalid("payload.config.until", "a whole number from 1"),
        ),
        (create(json!({ "moniker": "count", "monikr": 1 })), invalid("payload.monikr", "did you mean \"moniker\"?")),
        (json!([1, 2]), invalid("body", "must be a JSON object such as")),
        (pause("session_id", json!("x".repeat(129))), invalid("session_id", "at most 128 are allowed")),
        (pause("session_id", json!("a b")), invalid("session_id", alphabet)),
        (pause("session_id", json!("a'b")), invalid("session_id", alphabet)),
        (pause("session_id", json!("a\" OR 1=1 --")), invalid("session_id", alphabet)),
        (pause("session_id", json!("ümlaut")), invalid("session_id", alphabet)),
        (pause("session_id", json!("")), invalid("session_id", "send letters, digits and . _ : -")),
        (pause("session_id", json!(7)), invalid("session_id", "must be a string")),
        (pause("agent_id", json!("a/b")), invalid("agent_id", alphabet)),
        (pause("action_id", json!("a\nb")), invalid("action_id", alphabet)),
    ]
}

#[tokio::test]
async fn what_is_wrong_is_refused_with_code_field_and_remedy() {
    let fleet = Harness::start().await;
    let http = client();
    fleet.create("there", json!({ "moniker": "echo" })).await;
    for (nth, (body, said)) in malformed().into_iter().enumerate() {
        assert_refused(&fleet, &http, &format!("wrong-{nth}"), body.to_string().into_bytes(), &said).await;
    }
    // Nothing wedged.
    let said = fleet.tell("there", "input", json!({ "text": "still here" })).await;
    fleet.wait_processed(said["action_id"].as_str().unwrap()).await;
    assert_eq!(fleet.steps("there").await[0]["text"], "still here");
}

#[tokio::test]
async fn what_names_the_wrong_session_is_refused_and_recorded() {
    let fleet = Harness::start().await;
    let http = client();
    fleet.create("there", json!({ "moniker": "echo" })).await;
    fleet.create("over", json!({ "moniker": "count", "config": { "until": 1 } })).await;
    fleet.wait_status("over", "completed").await;
    fleet.create("deaf", json!({ "moniker": "count", "loop_interval_ms": 1000 })).await;
    for (target, said) in [
        (json!({ "session_id": "never-was" }), recorded(404, "session_not_found", "session_id", "GET /api/sessions")),
        (json!({ "agent_id": "nobody" }), recorded(404, "agent_not_found", "agent_id", "GET /api/agents")),
        (
            json!({ "session_id": "there", "agent_id": "someone-else" }),
            recorded(409, "wrong_agent", "agent_id", "leave agent_id out"),
        ),
        (json!({ "session_id": "over" }), recorded(409, "session_ended", "session_id", "takes no actions")),
    ] {
        for (verb, payload) in [
            ("pause", json!({})),
            ("resume", json!({})),
            ("destroy", json!({})),
            ("interrupt", json!({ "guidance": { "note": 1 } })),
            ("input", json!({ "text": "x" })),
        ] {
            let mut body = target.clone();
            body["type"] = json!(verb);
            body["payload"] = payload;
            let key = format!("{verb}-{}", said.code);
            assert_refused(&fleet, &http, &key, body.to_string().into_bytes(), &said).await;
        }
    }
    for (body, said) in [
        (
            json!({ "type": "create", "session_id": "over", "payload": { "moniker": "count" } }),
            recorded(409, "session_exists", "session_id", "leave it out to get a fresh one"),
        ),
        (
            json!({ "type": "input", "session_id": "deaf", "payload": { "text": "x" } }),
            unseen(409, "input_not_taken", "type", "guidance with interrupt"),
        ),
    ] {
        assert_refused(&fleet, &http, said.code, body.to_string().into_bytes(), &said).await;
    }
    // Nobody was paused or destroyed.
    fleet.wait_status("there", "running").await;
    fleet.wait_status("deaf", "running").await;
}

#[tokio::test]
async fn bytes_that_are_no_request_are_refused() {
    let fleet = Harness::start().await;
    let http = client();
    for (nth, (body, said)) in [
        (b"{\"type\":".to_vec(), unseen(400, "invalid_json", "", "Send one JSON object")),
        (b"\xff\xfe".to_vec(), unseen(400, "invalid_json", "", "Send one JSON object")),
        (Vec::new(), unseen(400, "invalid_json", "", "send a JSON object")),
        (nested(JSON_DEPTH_MAX + 1).into_bytes(), invalid("body", "send flatter data")),
        (vec![b' '; ACTION_BYTES_MAX + 1], unseen(413, "too_large", "", "send a path or URL instead")),
    ]
    .into_iter()
    .enumerate()
    {
        assert_refused(&fleet, &http, &format!("bytes-{nth}"), body, &said).await;
    }
    let anonymous = http.get(format!("{}/api/sessions", fleet.base_url)).send().await.unwrap();
    assert_eq!(anonymous.status().as_u16(), 401);
    let wrong = http.get(format!("{}/api/sessions", fleet.base_url)).bearer_auth("sf_guess").send().await.unwrap();
    assert_eq!(wrong.status().as_u16(), 401);
    let gone = fleet.try_request(Method::GET, "/api/nothing", None).await.unwrap();
    assert_eq!((gone.status.as_u16(), &gone.body["code"]), (404, &json!("not_found")));
}

#[tokio::test]
async fn the_same_action_twice_is_one_and_with_another_body_a_conflict() {
    let fleet = Harness::start().await;
    let body = json!({ "type": "create", "action_id": "once", "session_id": "once", "payload": { "moniker": "echo" } });
    assert_eq!(fleet.act(body.clone()).await["accepted"], true);
    let again = fleet.act(body.clone()).await;
    assert_eq!((&again["accepted"], &again["session_id"]), (&json!(false), &json!("once")));
    let mut other = body;
    other["payload"]["moniker"] = json!("count");
    let answer = fleet.post("/api/actions", &other).await;
    assert_eq!((answer.status.as_u16(), &answer.body["code"]), (409, &json!("action_conflict")));
    let error = &answer.body["errors"][0];
    assert_eq!(error["field"], "action_id", "{}", answer.body);
    assert!(error["message"].as_str().is_some_and(|text| text.contains("Use a fresh action_id")), "{error}");
    assert_eq!(fleet.get("/api/actions/once").await["payload"]["moniker"], "echo", "the first one stands");
}
