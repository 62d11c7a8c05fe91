//! Work that takes as long as a test wants: its tools are run by a worker of somebody else, which is the test.

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::desk::item;
use crate::harness::{Harness, wait};

pub const POOL: &str = "hands";

/// A tool of the library `desk` with its task and its action.
pub fn tool(id: &str) -> Vec<Value> {
    let (action, task) = (format!("{id}-run"), format!("{id}-task"));
    let tool = json!({"id": id, "name": id, "description": id, "library_id": "desk",
        "input_schema": {"type": "object"}, "target_type": "task", "target_id": task, "effect_class": "idempotent"});
    vec![
        item(
            "action_def",
            json!({"id": action, "name": id, "library_id": "desk", "kind": "external", "operation": "run",
                "config": {"pool": POOL}, "effect_class": "idempotent"}),
        ),
        item(
            "task",
            json!({"id": task, "name": id, "library_id": "desk", "steps": [{"ref": "s", "action_def_id": action}]}),
        ),
        item("tool", tool),
    ]
}

/// The same for work that goes on in the background.
pub fn tool_in_background(id: &str) -> Vec<Value> {
    let mut items = tool(id);
    for item in items.iter_mut().filter(|item| item["kind"] == "tool") {
        item["definition"]["async"] = json!(true);
    }
    items
}

/// The next task, once there is one.
pub async fn claim(fleet: &Harness) -> Value {
    let path = format!("/api/pools/{POOL}/claim?wait_s=5");
    wait("a task to be there", || async {
        let answer = fleet.post(&path, &json!({})).await;
        assert!(answer.status.is_success(), "{answer:?}");
        (answer.status == StatusCode::OK).then_some(answer.body)
    })
    .await
}

/// Ends a task; answers with the row of its result in the ledger, once that is taken.
pub async fn finish(fleet: &Harness, task: &Value, result: &Value) -> Value {
    let payload = json!({"operation_id": task["operation_id"], "result": result});
    let accepted = fleet.act(json!({"type": "tool_result", "payload": payload})).await;
    fleet.wait_processed(accepted["action_id"].as_str().expect("an id")).await
}
