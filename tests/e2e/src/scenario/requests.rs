//! Requests: the least that each needs, and what is said when it is missing.

use serde_json::{Value, json};

use crate::harness::Harness;

#[tokio::test]
async fn s124_each_type_is_accepted_with_the_least_it_needs_and_recorded_whole() {
    let fleet = Harness::start().await;
    let minimal = [
        json!({ "type": "create", "session_id": "s124", "payload": { "moniker": "echo" } }),
        json!({ "type": "input", "session_id": "s124", "payload": { "text": "hello" } }),
        json!({ "type": "interrupt", "session_id": "s124", "payload": { "guidance": { "note": 1 } } }),
        json!({ "type": "pause", "session_id": "s124" }),
        json!({ "type": "resume", "session_id": "s124" }),
        json!({ "type": "destroy", "session_id": "s124" }),
    ];
    for body in minimal {
        let accepted = fleet.act(body.clone()).await;
        let row = fleet.wait_processed(accepted["action_id"].as_str().unwrap()).await;
        assert_eq!(row["type"], body["type"]);
        assert_eq!(row["urgency"], "normal");
        assert_eq!(row["session_id"], "s124");
        assert!(row["actor"].as_str().is_some_and(|actor| !actor.is_empty()), "{row}");
        assert!(row["payload"].is_object() && row["metadata"].is_object(), "{row}");
        assert!(row["outcome"].is_string(), "{row}");
    }
    assert_eq!(fleet.status("s124").await, "stopped");
}

#[tokio::test]
async fn s124_what_is_missing_is_named_and_nothing_is_enqueued() {
    let fleet = Harness::start().await;
    fleet.create("there", json!({ "moniker": "echo" })).await;
    let cases: &[(Value, &str)] = &[
        (json!({ "payload": {} }), "type"),
        (json!({ "type": "create" }), "payload"),
        (json!({ "type": "create", "payload": {} }), "payload.moniker"),
        (json!({ "type": "input" }), "session_id"),
        (json!({ "type": "interrupt", "session_id": "there" }), "payload.guidance"),
        (json!({ "type": "interrupt", "session_id": "there", "payload": {} }), "payload.guidance"),
        (json!({ "type": "pause" }), "session_id"),
        (json!({ "type": "resume" }), "session_id"),
        (json!({ "type": "destroy" }), "session_id"),
        (json!({ "type": "tool_result" }), "session_id"),
    ];
    for (body, field) in cases {
        let answer = fleet.post("/api/actions", body).await;
        assert_eq!(answer.status.as_u16(), 400, "{body}: {}", answer.body);
        let fields: Vec<&str> = answer.body["errors"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|error| error["field"].as_str())
            .collect();
        assert!(fields.iter().any(|named| named.starts_with(field)), "{body} must name {field}: {}", answer.body);
    }
    let metrics = fleet.get("/metrics").await;
    let accepted: Vec<&str> =
        metrics.as_str().unwrap().lines().filter(|line| line.starts_with("stepfleet_actions_accepted_total")).collect();
    assert_eq!(accepted, ["stepfleet_actions_accepted_total{type=\"create\"} 1"], "only the first create got in");
    assert_eq!(fleet.get("/api/sessions").await["items"].as_array().unwrap().len(), 1);
}
