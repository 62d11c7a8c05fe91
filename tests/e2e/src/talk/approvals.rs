//! Questions that nobody answers: what counts then is what the tool's definition says, and an answer that comes
//! later changes nothing.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::asking::{decide, waiting};
use super::by_hand::{self, claim, finish};
use super::desk::{asked, converse, ended, item, open_on, said, say};
use crate::harness::Harness;

/// How long a person has for an answer; long enough to be seen waiting.
const TIME_S: u64 = 3;
const CONVERSATION: &str = "c-late";

/// What the model wants to do, to the letter.
fn arguments() -> Value {
    json!({"to": "Ada", "cents": 1_999, "for": {"order": 7, "items": ["tea", "tea"]}, "note": null})
}

/// A fleet whose agent `ben` pays after a question that is answered like this if nobody does it, and the record of
/// what models are asked.
async fn open(default: &str) -> (Harness, PathBuf) {
    let script = json!({"rules": [
        {"when": {"last": "tool"}, "reply": {"text": "The tool said {{result}}."}},
        {"when": {"contains": "pay"}, "reply": {"tool_calls": [{"name": "pay", "arguments": arguments()}]}}
    ]});
    let mut pay = by_hand::tool("pay");
    for tool in pay.iter_mut().filter(|item| item["kind"] == "tool") {
        tool["definition"]["requires_approval"] = json!({"expires_s": TIME_S, "default": default});
    }
    let persona = json!({"system_prompt": "You help.", "model_profile_id": "m", "tool_ids": ["pay"]});
    let mut definitions = vec![
        item("library", json!({"id": "desk", "name": "Desk"})),
        item("project", json!({"id": "p1", "name": "P1"})),
        item("model_profile", json!({"id": "m", "name": "M", "provider": "scripted", "model_id": "scripted"})),
    ];
    definitions.extend(pay);
    definitions
        .push(item("agent", json!({"id": "ben", "name": "Ben", "project_ids": ["p1"], "persona_inline": persona})));
    open_on(script, &definitions).await
}

/// A turn that waits, and its question, which is all that has been dispatched. From here on nobody says anything.
async fn unanswered(fleet: &Harness, silence_means_yes: bool) -> (String, Value) {
    converse(fleet, CONVERSATION, &["ben"]).await;
    let turn = say(fleet, CONVERSATION, "please pay").await;
    let waits = waiting(fleet, &turn).await;
    assert_eq!(waits["turn"]["status"], "active", "{waits}");
    let [question] = waits["operations"].as_array().expect("operations").as_slice() else { panic!("{waits}") };
    assert_eq!((&question["kind"], &question["state"]), (&json!("approval"), &json!("pending")), "{waits}");
    let asked = &question["approval"];
    assert_eq!((&asked["expires_ms"], &asked["default_approve"]), (&json!(TIME_S * 1_000), &json!(silence_means_yes)));
    assert_eq!(question["request"]["input"], arguments(), "what a person is shown is what would be done");
    (turn, question.clone())
}

/// Neither answer is taken any more, and each is told why.
async fn is_too_late(fleet: &Harness, question: &Value) {
    for verdict in ["approve", "deny"] {
        let late = decide(fleet, question, verdict).await;
        assert_eq!((late.status, &late.body["code"]), (StatusCode::CONFLICT, &json!("no_open_operation")), "{late:?}");
        let why = late.body["detail"].as_str().unwrap_or_default();
        assert!(why.contains("nobody did in time and its default counted. The first result counts"), "{why}");
    }
}

/// Nothing waits for whoever runs the tool.
async fn nothing_to_do(fleet: &Harness) {
    let path = format!("/api/pools/{}/claim?wait_s=1", by_hand::POOL);
    let answer = fleet.post(&path, &json!({})).await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT, "{answer:?}");
}

/// Kinds and states of all that a turn has dispatched, and how often each was begun.
async fn dispatched(fleet: &Harness, turn: &str) -> Vec<Value> {
    let detail = fleet.get(&format!("/api/turns/{turn}")).await;
    let operations = detail["operations"].as_array().expect("operations");
    let mut rows: Vec<Value> =
        operations.iter().map(|one| json!([one["kind"], one["state"], one["attempt"]])).collect();
    rows.sort_by_key(ToString::to_string);
    rows
}

#[tokio::test]
async fn a_question_that_nobody_answers_is_a_no_and_the_model_is_told() {
    let (fleet, record) = open("deny").await;
    let begun = Instant::now();
    let (turn, question) = unanswered(&fleet, false).await;
    let row = ended(&fleet, &turn).await;
    assert!(begun.elapsed() >= Duration::from_secs(TIME_S), "after {:?}", begun.elapsed());
    assert_eq!((&row["status"], &row["moves"]), (&json!("completed"), &json!(2)), "{row}");
    assert_eq!(row["issues"]["tool_failures"], 1, "{row}");

    let requests = asked(&record);
    assert_eq!(requests.len(), 2, "{requests:?}");
    let told = requests[1]["results"].as_str().expect("a result");
    assert!(told.contains("\"PERMISSION_DENIED\"") && told.contains("nobody answered in time"), "{told}");
    let detail = fleet.get(&format!("/api/turns/{turn}")).await;
    let error = &detail["moves"][0]["tool_results"][0]["error"];
    assert_eq!((&error["code"], &error["retriable"]), (&json!("PERMISSION_DENIED"), &json!(false)), "{detail}");

    is_too_late(&fleet, &question).await;
    nothing_to_do(&fleet).await;
    assert_eq!(dispatched(&fleet, &turn).await, [json!(["approval", "completed", 0])], "the tool was never run");
    assert_eq!(said(&fleet, CONVERSATION).await.len(), 2, "nor was more said for a late answer");
}

#[tokio::test]
async fn a_question_whose_silence_means_yes_runs_the_tool_once_and_as_it_was_asked() {
    let (fleet, record) = open("approve").await;
    let begun = Instant::now();
    let (turn, question) = unanswered(&fleet, true).await;
    let task = claim(&fleet).await;
    assert!(begun.elapsed() >= Duration::from_secs(TIME_S), "after {:?}", begun.elapsed());
    assert_eq!((&task["tool"], &task["turn_id"]), (&json!("pay"), &json!(turn)), "{task}");
    assert_eq!(task["input"], arguments(), "{task}");

    // Nobody can take it back, nor make a second one of it.
    is_too_late(&fleet, &question).await;
    nothing_to_do(&fleet).await;
    finish(&fleet, &task, &json!({"paid": true})).await;
    let row = ended(&fleet, &turn).await;
    assert_eq!(
        (&row["status"], &row["moves"], &row["issues"]),
        (&json!("completed"), &json!(2), &Value::Null),
        "{row}"
    );
    assert_eq!(said(&fleet, CONVERSATION).await[1].1, "The tool said {\"paid\":true}.");
    assert_eq!(asked(&record).len(), 2);

    is_too_late(&fleet, &question).await;
    nothing_to_do(&fleet).await;
    let once = [json!(["approval", "completed", 0]), json!(["task", "completed", 1])];
    assert_eq!(dispatched(&fleet, &turn).await, once);
}
