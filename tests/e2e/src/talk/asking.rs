//! What agents ask people, and what people say to it.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Answer, Harness, wait};

/// A turn with all that belongs to it, once it waits for a person.
pub async fn waiting(fleet: &Harness, turn: &str) -> Value {
    wait(&format!("turn {turn} to wait for a person"), || async {
        let answer = fleet.try_request(Method::GET, &format!("/api/turns/{turn}"), None).await.ok()?;
        (answer.status.is_success() && answer.body["turn"]["phase"] == "waiting_approval").then_some(answer.body)
    })
    .await
}

/// What nobody has answered yet in a conversation.
pub async fn questions(fleet: &Harness, conversation: &str) -> Vec<Value> {
    let path = format!("/api/operations?kind=approval&state=pending&conversation_id={conversation}");
    fleet.get(&path).await["items"].as_array().expect("a page").clone()
}

/// Says `approve` or `deny` to a question; with whatever answer of the fleet.
pub async fn decide(fleet: &Harness, question: &Value, verdict: &str) -> Answer {
    let path = format!("/api/operations/{}/{verdict}", question["operation_id"].as_str().expect("an id"));
    fleet.post(&path, &json!({"arguments_hash": question["approval"]["arguments_hash"]})).await
}
