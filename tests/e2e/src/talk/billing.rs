//! What models are paid for: calls that tools make, and calls that were cut short, in the records, in the sums and
//! in the budgets.

use reqwest::Method;
use serde_json::{Value, json};

use super::desk::{self, converse, ended, said, say};
use crate::harness::{Harness, wait};

/// Tokens that a turn of `eve` may use: more than her first reply, less than half of that and what her tool asks.
const BOUND: u64 = 20_000;
/// What becomes of `BOUND`: a reply of 10 and 1, and the tool's call of 40,000 and 2.
const USED: u64 = 40_013;

/// Agents with a tool that asks a model; `eve` may not use much.
fn definitions() -> Vec<Value> {
    let item = |kind: &str, definition: Value| json!({"kind": kind, "definition": definition});
    let persona = |id: &str, more: Value| {
        let mut persona = json!({"id": id, "name": id, "library_id": "desk", "system_prompt": "You help.",
            "model_profile_id": "m", "tool_ids": ["consult"]});
        persona.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        item("persona", persona)
    };
    let agent = |id: &str, persona: &str| {
        let persona = json!({ "persona_id": persona });
        item("agent", json!({"id": id, "name": id, "project_ids": ["p1"], "persona_ref": persona}))
    };
    vec![
        item("library", json!({"id": "desk", "name": "Desk"})),
        item("project", json!({"id": "p1", "name": "P1"})),
        item(
            "model_profile",
            json!({"id": "m", "name": "M", "provider": "scripted", "model_id": "scripted",
                "cost_per_1k_input_tokens": 1.0, "cost_per_1k_output_tokens": 10.0}),
        ),
        item(
            "action_def",
            json!({"id": "question", "name": "Question", "library_id": "desk", "kind": "llm", "operation": "generate",
                "config": {"prompt": "of a tool: {{q}}", "model_profile_id": "m"}, "effect_class": "pure"}),
        ),
        item(
            "task",
            json!({"id": "ask-task", "name": "Ask", "library_id": "desk",
                "steps": [{"ref": "s", "action_def_id": "question"}]}),
        ),
        item(
            "tool",
            json!({"id": "consult", "name": "consult", "description": "Asks.", "library_id": "desk",
                "input_schema": {"type": "object"}, "target_type": "task", "target_id": "ask-task",
                "effect_class": "pure"}),
        ),
        persona("helper", json!({})),
        persona("thrifty", json!({"constraints": {"budgets": {"max_tokens_per_turn": BOUND}}})),
        persona("mean", json!({"constraints": {"budgets": {"max_tokens_per_turn": 1}}})),
        agent("ben", "helper"),
        agent("amy", "mean"),
        agent("eve", "thrifty"),
    ]
}

async fn open() -> Harness {
    let used = |input: u64, output: u64| json!({"input_tokens": input, "output_tokens": output});
    let script = json!({"rules": [
        {"when": {"contains": "of a tool:"}, "reply": {"text": "tea", "usage": used(40_000, 2)}},
        {"when": {"last": "tool"}, "reply": {"text": "It is {{result}}.", "usage": used(10, 1)}},
        {"when": {"contains": "consult"},
         "reply": {"tool_calls": [{"name": "consult", "arguments": {"q": "tea or coffee?"}}], "usage": used(10, 1)}},
        {"when": {"contains": "at length"}, "reply": {"text": "word ".repeat(60), "delta_ms": 100}}
    ], "otherwise": {"text": "I heard {{prompt}}.", "usage": used(10, 1)}});
    desk::open_on(script, &definitions()).await.0
}

/// Tokens in and out of all recorded calls of a turn, and what they cost.
fn sum(calls: &[Value]) -> (u64, u64, f64) {
    let number = |call: &Value, key: &str| call["usage"][key].as_u64().unwrap_or(0);
    calls.iter().fold((0, 0, 0.0), |(input, output, cost), call| {
        let more = call["cost"].as_f64().unwrap_or(0.0);
        (input + number(call, "input_tokens"), output + number(call, "output_tokens"), cost + more)
    })
}

fn used(turn: &Value) -> (u64, u64, f64) {
    let usage = &turn["usage"];
    let number = |key: &str| usage[key].as_u64().unwrap_or(0);
    (number("input_tokens"), number("output_tokens"), usage["cost"].as_f64().unwrap_or(0.0))
}

#[tokio::test]
async fn a_tool_that_asks_a_model_is_in_the_records_and_in_all_sums() {
    let fleet = open().await;
    converse(&fleet, "cllm", &["ben"]).await;
    let id = say(&fleet, "cllm", "please consult").await;
    let turn = ended(&fleet, &id).await;
    assert_eq!(said(&fleet, "cllm").await[1].1, "It is tea.", "{turn}");
    let detail = fleet.get(&format!("/api/turns/{id}")).await;
    let calls = detail["provider_calls"].as_array().expect("records");
    let ids: Vec<&str> = calls.iter().filter_map(|call| call["id"].as_str()).collect();
    assert_eq!(ids, [format!("{id}.1"), format!("{id}.1.0.llm.1"), format!("{id}.2")]);
    let (input, output, cost) = used(&turn);
    assert_eq!((input, output, sum(calls)), (40_020, 4, (input, output, cost)), "{detail}");
    assert!((cost - 40.06).abs() < 1e-9, "40,020 in at 1 and 4 out at 10, for each thousand: {cost}");
    let spending = fleet.get("/api/spending").await;
    assert_eq!((&spending["tokens"], &spending["moves"]), (&json!(40_024), &json!(3)), "{spending}");
}

#[tokio::test]
async fn a_budget_that_a_tool_used_up_is_asked_about_before_the_model_is_asked_again() {
    let fleet = open().await;
    converse(&fleet, "cthrift", &["eve"]).await;
    let id = say(&fleet, "cthrift", "please consult").await;
    let question = answer_yes(&fleet).await;
    assert!(question.starts_with(&format!("This turn has used {USED} of {BOUND} tokens")), "{question}");
    assert_eq!(ended(&fleet, &id).await["status"], "completed");
    assert_eq!(said(&fleet, "cthrift").await[1].1, "It is tea.");
}

#[tokio::test]
async fn a_request_that_is_larger_than_what_is_left_is_asked_about_before_it_is_sent() {
    let fleet = open().await;
    converse(&fleet, "cmean", &["amy"]).await;
    let id = say(&fleet, "cmean", "hello").await;
    let question = answer_yes(&fleet).await;
    assert!(
        question.starts_with("This turn has used 0 of 1 tokens, and the next request alone has about"),
        "{question}"
    );
    // One yes is enough for the one call.
    assert_eq!(ended(&fleet, &id).await["status"], "completed");
    let detail = fleet.get(&format!("/api/turns/{id}")).await;
    assert_eq!(detail["provider_calls"].as_array().map(Vec::len), Some(1), "{detail}");
}

/// Says yes to the one question that there is, which is given back.
async fn answer_yes(fleet: &Harness) -> String {
    let asked = wait("the question", || async {
        let page = fleet.get("/api/operations?kind=approval&state=pending").await;
        page["items"].as_array()?.first().cloned()
    })
    .await;
    let path = format!("/api/operations/{}/approve", asked["operation_id"].as_str().unwrap());
    let yes = fleet.post(&path, &json!({ "arguments_hash": asked["approval"]["arguments_hash"] })).await;
    assert!(yes.status.is_success(), "{yes:?}");
    asked["request"]["question"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_call_that_is_cut_short_is_paid_for_and_marked_as_an_estimate() {
    let fleet = open().await;
    converse(&fleet, "ccut", &["ben"]).await;
    let id = say(&fleet, "ccut", "tell me at length").await;
    wait("the model to be asked", || async {
        let answer = fleet.try_request(Method::GET, &format!("/api/turns/{id}"), None).await.ok()?;
        (answer.body["turn"]["phase"] == "thinking").then_some(())
    })
    .await;
    let stop = json!({"text": "just say hello", "busy": "interrupt"});
    let answer = fleet.post("/api/conversations/ccut/messages", &stop).await;
    assert!(answer.status.is_success(), "{answer:?}");
    assert_eq!(answer.body["responders"][0]["outcome"], "interrupted", "{answer:?}");
    let turn = ended(&fleet, &id).await;
    let detail = fleet.get(&format!("/api/turns/{id}")).await;
    assert_eq!(detail["moves"][0]["record"]["cut"], true, "{detail}");
    let calls = detail["provider_calls"].as_array().expect("records");
    let [cut, whole] = calls.as_slice() else { panic!("{detail}") };
    assert_eq!((&cut["outcome"]["ok"], &whole["outcome"]["ok"]), (&json!(false), &json!(true)), "{detail}");
    let lost = &cut["response_metadata"]["lost_attempts"];
    assert_eq!((lost.as_array().map(Vec::len), &lost[0]["estimated"]), (Some(1), &json!(true)), "{cut}");
    assert!(cut["usage"]["input_tokens"].as_u64() > Some(0) && cut["cost"].as_f64() > Some(0.0), "{cut}");
    assert_eq!(sum(calls), used(&turn), "{detail}");
}
