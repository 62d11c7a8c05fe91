//! Agents that loop in agents: who is there already is asked where it is.

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::desk::{converse, ended, item, open_on};
use crate::harness::{Harness, wait};

fn agent(id: &str, instructions: &str, tools: &[&str]) -> Value {
    let persona = json!({"system_prompt": instructions, "model_profile_id": "m", "tool_ids": tools});
    item("agent", json!({"id": id, "name": id, "project_ids": ["p1"], "persona_inline": persona}))
}

/// A fleet whose agents `boss` and `lead` loop in the agent `arch` when they are told to ask; their models think for
/// so long before they do.
async fn open(delay_ms: u64) -> Harness {
    let ask = json!([{"name": "architect", "arguments": {"question": "does it fit?"}}]);
    let script = json!({"rules": [
        {"when": {"system": "You draw plans"}, "reply": {"text": "I am the architect."}},
        {"when": {"last": "tool", "result": "*joined*"}, "reply": {"text": "I asked."}},
        {"when": {"contains": "ask"}, "reply": {"tool_calls": ask, "delay_ms": delay_ms}}
    ]});
    let architect = json!({"id": "architect", "name": "architect", "description": "architect", "library_id": "team",
        "input_schema": {"type": "object"}, "target_type": "agent", "target_id": "arch",
        "invocation_mode": "loop_in", "effect_class": "pure"});
    let definitions = [
        item("library", json!({"id": "team", "name": "Team"})),
        item("project", json!({"id": "p1", "name": "P1"})),
        item("model_profile", json!({"id": "m", "name": "M", "provider": "scripted", "model_id": "scripted"})),
        item("tool", architect),
        agent("boss", "You manage.", &["architect"]),
        agent("lead", "You lead.", &["architect"]),
        agent("arch", "You draw plans.", &[]),
    ];
    open_on(script, &definitions).await.0
}

/// Says something to the boss alone, whose turn ends well.
async fn ask(fleet: &Harness, conversation: &str) {
    let path = format!("/api/conversations/{conversation}/messages");
    let answer = fleet.post(&path, &json!({"text": "ask the architect", "to": ["boss"]})).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{answer:?}");
    let turn = ended(fleet, answer.body["responders"][0]["turn_id"].as_str().expect("a turn")).await;
    assert_eq!(turn["status"], "completed", "{turn}");
}

/// Waits until the architect has answered so many times, and gives its seats.
async fn answered(fleet: &Harness, conversation: &str, times: usize) -> Vec<Value> {
    wait("the architect to answer", || async {
        let turns = fleet.get(&format!("/api/conversations/{conversation}/turns")).await;
        let of_arch = turns["items"].as_array()?.iter().filter(|turn| turn["agent_id"] == "arch");
        (of_arch.filter(|turn| turn["status"] == "completed").count() == times).then_some(())
    })
    .await;
    let page = fleet.get(&format!("/api/conversations/{conversation}/participants")).await;
    let mut seats = page["items"].as_array().expect("a page").clone();
    seats.retain(|seat| seat["agent_id"] == "arch");
    seats
}

#[tokio::test]
async fn who_is_looped_in_again_is_asked_again_and_sits_there_once() {
    let fleet = open(0).await;
    converse(&fleet, "c-team", &["boss"]).await;
    ask(&fleet, "c-team").await;
    let first = answered(&fleet, "c-team", 1).await;
    ask(&fleet, "c-team").await;
    let again = answered(&fleet, "c-team", 2).await;
    assert_eq!((first.len(), &first), (1, &again));

    // Removed, it comes back to a seat of its own.
    let seat = first[0]["participant_id"].as_str().expect("an id");
    let left = fleet
        .try_request(reqwest::Method::DELETE, &format!("/api/conversations/c-team/participants/{seat}"), None)
        .await
        .expect("an answer");
    assert_eq!(left.status, StatusCode::OK, "{left:?}");
    ask(&fleet, "c-team").await;
    let back = answered(&fleet, "c-team", 3).await;
    let here = back.iter().filter(|seat| seat["left_at"].is_null()).count();
    assert_eq!((back.len(), here), (2, 1), "{back:?}");
}

#[tokio::test]
async fn who_took_part_from_the_start_is_asked_there() {
    let fleet = open(0).await;
    converse(&fleet, "c-both", &["boss", "arch"]).await;
    ask(&fleet, "c-both").await;
    assert_eq!(answered(&fleet, "c-both", 1).await.len(), 1);
    let told = fleet.post("/api/conversations/c-both/messages", &json!({"text": "thank you"})).await;
    assert_eq!(told.body["responders"].as_array().map(Vec::len), Some(2), "each answers once: {told:?}");
}

/// Both models are asked before anybody is looped in, so neither session knows of the other's guest.
#[tokio::test]
async fn who_is_looped_in_by_two_at_once_sits_there_once_and_answers_both() {
    let fleet = open(500).await;
    converse(&fleet, "c-race", &["boss", "lead"]).await;
    let answer = fleet.post("/api/conversations/c-race/messages", &json!({"text": "ask the architect"})).await;
    let responders = answer.body["responders"].as_array().expect("both answer").clone();
    assert_eq!(responders.len(), 2, "{answer:?}");
    for one in &responders {
        let turn = ended(&fleet, one["turn_id"].as_str().expect("a turn")).await;
        assert_eq!(turn["status"], "completed", "{turn}");
    }
    let seats = answered(&fleet, "c-race", 2).await;
    assert_eq!(seats.len(), 1, "{seats:?}");
    let sessions = fleet.get("/api/sessions?agent_id=arch").await;
    assert_eq!(sessions["items"].as_array().map(Vec::len), Some(1), "{sessions}");
}
