//! Requests: the least that each needs, and what is said when it is missing.

use serde_json::{Value, json};

use crate::harness::Harness;
use crate::talk::desk::{converse, ended, open_on, said, say};

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

/// A fleet with the agent `uma`, whose tool `far` waits for a worker of others.
async fn open_far() -> Harness {
    let script = json!({"rules": [
        {"when": {"last": "tool"}, "reply": {"text": "The tool said {{result}}."}},
        {"when": {"contains": "use the tool"}, "reply": {"tool_calls": [{"name": "far", "arguments": {}}]}}
    ], "otherwise": {"text": "I heard."}});
    let item = |kind: &str, definition: Value| json!({"kind": kind, "definition": definition});
    let definitions = [
        item("library", json!({"id": "desk", "name": "Desk"})),
        item("project", json!({"id": "p1", "name": "P1"})),
        item(
            "model_profile",
            json!({"id": "everyday", "name": "Everyday", "provider": "scripted", "model_id": "scripted"}),
        ),
        item(
            "action_def",
            json!({"id": "far-run", "name": "Far", "library_id": "desk", "kind": "external", "operation": "run",
                "config": {"pool": "elsewhere"}, "effect_class": "idempotent"}),
        ),
        item(
            "task",
            json!({"id": "far-task", "name": "Far", "library_id": "desk",
                "steps": [{"ref": "s", "action_def_id": "far-run"}]}),
        ),
        item(
            "tool",
            json!({"id": "far", "name": "far", "description": "Far away", "library_id": "desk",
                "input_schema": {"type": "object"}, "target_type": "task", "target_id": "far-task",
                "effect_class": "idempotent"}),
        ),
        item(
            "agent",
            json!({"id": "uma", "name": "Uma", "project_ids": ["p1"], "persona_inline": {
                "system_prompt": "You help.", "model_profile_id": "everyday", "tool_ids": ["far"]}}),
        ),
    ];
    open_on(script, &definitions).await.0
}

#[tokio::test]
async fn s124_a_tool_result_needs_its_operation_and_its_outcome() {
    let fleet = open_far().await;
    converse(&fleet, "c124", &["uma"]).await;
    for n in [1, 2] {
        let turn = say(&fleet, "c124", "use the tool").await;
        let claimed = fleet.post("/api/pools/elsewhere/claim?wait_s=20", &json!({})).await;
        assert_eq!(claimed.status.as_u16(), 200, "{claimed:?}");
        let task = claimed.body;
        let mut body = json!({ "type": "tool_result", "payload": { "result": n } });
        if n == 1 {
            // It knows its session.
            body["payload"]["operation_id"] = task["operation_id"].clone();
        } else {
            // The model's own id of a call is known within a session only.
            body["session_id"] = task["session_id"].clone();
            body["payload"]["tool_call_id"] = task["tool_call_id"].clone();
        }
        let accepted = fleet.act(body.clone()).await;
        let row = fleet.wait_processed(accepted["action_id"].as_str().unwrap()).await;
        assert_eq!((&row["type"], &row["outcome"]), (&json!("tool_result"), &json!("ok")), "{row}");
        assert_eq!((&row["urgency"], &row["session_id"]), (&json!("normal"), &task["session_id"]), "{row}");
        assert_eq!(row["payload"], body["payload"]);
        assert!(row["metadata"].is_object(), "{row}");
        let turn = ended(&fleet, &turn).await;
        assert_eq!(turn["status"], "completed", "{turn}");
        assert_eq!(said(&fleet, "c124").await.last().unwrap().1, format!("The tool said {n}."));
    }
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
        (json!({ "type": "tool_result", "session_id": "there", "payload": { "result": 1 } }), "payload.operation_id"),
        (json!({ "type": "tool_result", "payload": { "operation_id": "o" } }), "payload.result"),
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
