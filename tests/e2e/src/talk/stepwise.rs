//! Agents without turns in a conversation: what their steps say is in the transcript.

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::desk::{ended, open, said};
use crate::harness::{Harness, assert_chain, wait};

/// What an agent has said, once it is so many messages.
async fn told(fleet: &Harness, conversation: &str, agent: &str, count: usize, query: &str) -> Vec<Value> {
    let path = format!("/api/conversations/{conversation}/messages?limit=1000{query}");
    wait(&format!("{count} messages of {agent}"), || async {
        let page = fleet.get(&path).await;
        let items = page["items"].as_array()?.iter();
        let its: Vec<Value> =
            items.filter(|one| one["agent_id"] == agent && one["event_type"] == "utterance").cloned().collect();
        (its.len() >= count).then_some(its)
    })
    .await
}

async fn post(fleet: &Harness, conversation: &str, body: Value) -> Value {
    let answer = fleet.post(&format!("/api/conversations/{conversation}/messages"), &body).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{answer:?}");
    answer.body
}

#[tokio::test]
async fn an_agent_without_turns_answers_in_the_transcript() {
    let mut fleet = open().await;
    let seats = json!([{"agent_id": "parrot", "moniker": "echo"}, {"agent_id": "ben"}]);
    let answer = fleet.post("/api/conversations", &json!({"conversation_id": "c-step", "agents": seats})).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");

    let answer = post(&fleet, "c-step", json!({"text": "hello"})).await;
    let responders = answer["responders"].as_array().expect("a list");
    let of = |agent: &str| responders.iter().find(|one| one["agent_id"] == agent).expect("it takes part");
    assert_eq!((&of("parrot")["outcome"], of("parrot").get("turn_id")), (&json!("delivered"), None), "{answer}");
    assert_eq!(of("ben")["outcome"], "turn", "{answer}");
    let turn = ended(&fleet, of("ben")["turn_id"].as_str().expect("a turn")).await;
    assert_eq!(turn["status"], "completed", "{turn}");

    let first = told(&fleet, "c-step", "parrot", 1, "").await;
    let named = post(&fleet, "c-step", json!({"text": "again", "to": ["parrot"]})).await;
    assert_eq!(named["responders"][0]["outcome"], "delivered", "{named}");
    let both = told(&fleet, "c-step", "parrot", 2, "").await;
    assert_eq!(both[0], first[0], "it stays as it was");
    let session = of("parrot")["session_id"].as_str().expect("a session");
    for (n, (one, text)) in both.iter().zip(["hello", "again"]).enumerate() {
        assert_eq!((&one["sender_type"], &one["text"], &one["iteration"]), (&json!("agent"), &json!(text), &json!(n)));
        assert_eq!((&one["session_id"], &one["status"], one.get("turn_id")), (&json!(session), &json!("ok"), None));
        assert_eq!(one["message_id"], format!("{session}.iteration.{n}"), "{one}");
        assert_eq!(one["next_step_token"], format!("echo/{}", n + 1), "{one}");
    }
    assert_eq!(told(&fleet, "c-step", "parrot", 2, "&include=all").await, both, "beside everything else");

    // What it says is nobody's input: one turn, and one step for each message that it was given.
    let turns = fleet.get("/api/conversations/c-step/turns").await;
    assert_eq!(turns["items"].as_array().map(Vec::len), Some(1), "{turns}");
    fleet.kill();
    fleet.up().await;
    post(&fleet, "c-step", json!({"text": "and again", "to": ["parrot"]})).await;
    let all = told(&fleet, "c-step", "parrot", 3, "").await;
    assert_eq!((&all[..2], &all[2]["text"]), (&both[..], &json!("and again")), "after a crash");
    let steps = fleet.steps(session).await;
    assert_chain(&steps);
    assert_eq!((steps.len(), all.len()), (3, 3), "{steps:?}");
}

/// Its steps take microseconds, and share commits.
#[tokio::test]
async fn each_step_of_a_quick_loop_is_one_message() {
    let fleet = open().await;
    let payload = json!({"moniker": "count", "config": {"until": 200}, "conversation_id": "c-count"});
    fleet.create("counter", payload).await;
    fleet.wait_status("counter", "completed").await;
    let numbers: Vec<(String, String)> = (1..=200).map(|n| ("agent".to_owned(), n.to_string())).collect();
    assert_eq!(said(&fleet, "c-count").await, numbers, "in a conversation that nobody had created");
    let told = told(&fleet, "c-count", "agent-of-counter", 200, "").await;
    let iterations: Vec<u64> = told.iter().filter_map(|one| one["iteration"].as_u64()).collect();
    assert_eq!(iterations, (0..200).collect::<Vec<u64>>());
    // Without a conversation nothing is said, and steps are as ever.
    fleet.create("mute", json!({"moniker": "count", "config": {"until": 3}})).await;
    fleet.wait_status("mute", "completed").await;
    let answer =
        fleet.try_request(reqwest::Method::GET, "/api/conversations/mute/messages", None).await.expect("an answer");
    assert_eq!(answer.status, StatusCode::NOT_FOUND, "{answer:?}");
}
