//! Input that must be refused: named, explained, recorded where it was an action, and harmless.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::Harness;

#[tokio::test]
async fn what_is_wrong_is_refused_with_code_field_and_remedy() {
    let fleet = Harness::start().await;
    fleet.create("there", json!({ "moniker": "echo" })).await;
    fleet.create("over", json!({ "moniker": "count", "config": { "until": 1 } })).await;
    fleet.wait_status("over", "completed").await;
    fleet.create("deaf", json!({ "moniker": "count", "loop_interval_ms": 1000 })).await;
    let create = |payload: Value| json!({ "type": "create", "payload": payload });
    let pause = |id: &str| json!({ "type": "pause", "session_id": id });
    let cases: &[(Value, u16, &str)] = &[
        (json!({ "type": "explode", "session_id": "there" }), 400, "unknown_type"),
        (create(json!({ "moniker": "tell_a_lie" })), 400, "unknown_moniker"),
        (create(json!({ "moniker": 7 })), 400, "invalid_request"),
        (create(json!({ "moniker": "count", "max_steps": -1 })), 400, "invalid_request"),
        (create(json!({ "moniker": "count", "config": { "until": "ten" } })), 400, "invalid_request"),
        (create(json!({ "moniker": "count", "monikr": 1 })), 400, "invalid_request"),
        (json!([1, 2]), 400, "invalid_request"),
        (pause(&"x".repeat(129)), 400, "invalid_request"),
        (pause("a'b"), 400, "invalid_request"),
        (pause("a\" OR 1=1 --"), 400, "invalid_request"),
        (pause("ümlaut"), 400, "invalid_request"),
        (pause(""), 400, "invalid_request"),
        (pause("never-was"), 404, "session_not_found"),
        (json!({ "type": "pause", "agent_id": "nobody" }), 404, "agent_not_found"),
        (json!({ "type": "pause", "session_id": "there", "agent_id": "someone-else" }), 409, "wrong_agent"),
        (pause("over"), 409, "session_ended"),
        (json!({ "type": "input", "session_id": "deaf", "payload": { "text": "x" } }), 409, "input_not_taken"),
        (json!({ "type": "create", "session_id": "over", "payload": { "moniker": "count" } }), 409, "session_exists"),
    ];
    for (body, status, code) in cases {
        let answer = fleet.post("/api/actions", body).await;
        assert_eq!(
            (answer.status.as_u16(), answer.body["code"].as_str()),
            (*status, Some(*code)),
            "{body}: {}",
            answer.body
        );
        assert!(answer.body["detail"].as_str().is_some_and(|detail| detail.len() > 10), "{}", answer.body);
        // A refusal that is recorded can be looked up.
        if let Some(id) = answer.body["action_id"].as_str() {
            let row = fleet.get(&format!("/api/actions/{id}")).await;
            assert_eq!((&row["outcome"], &row["code"]), (&json!("rejected"), &json!(code)), "{row}");
        }
    }
    // Nothing wedged.
    let said = fleet.tell("there", "input", json!({ "text": "still here" })).await;
    fleet.wait_processed(said["action_id"].as_str().unwrap()).await;
    assert_eq!(fleet.steps("there").await[0]["text"], "still here");
}

#[tokio::test]
async fn bytes_that_are_no_request_are_refused() {
    let fleet = Harness::start().await;
    // An oversized body ends its connection, so each request has one of its own.
    let http = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().unwrap();
    let url = format!("{}/api/actions", fleet.base_url);
    let send = |body: Vec<u8>| {
        http.post(&url).bearer_auth(&fleet.token).header("content-type", "application/json").body(body).send()
    };
    let cases: [(Vec<u8>, u16, &str); 4] = [
        (b"{\"type\":".to_vec(), 400, "invalid_json"),
        (b"\xff\xfe".to_vec(), 400, "invalid_json"),
        (Vec::new(), 400, "invalid_json"),
        (vec![b' '; (1 << 20) + 1], 413, "too_large"),
    ];
    for (body, status, code) in cases {
        let answer = send(body).await.unwrap();
        assert_eq!(answer.status().as_u16(), status);
        assert_eq!(answer.headers()["content-type"], "application/problem+json");
        assert_eq!(answer.json::<Value>().await.unwrap()["code"], code);
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
}
