//! Long conversations: what is old becomes a summary for the model, and stays for everybody else.

use std::path::PathBuf;

use reqwest::Method;
use serde_json::{Value, json};

use super::desk::{asked, converse, ended, open_on, said, say};
use crate::harness::{Harness, assert_chain, wait};

const TURNS: usize = 10;

/// A fleet with the agent `ida`, whose model has a small window, and the record of what models are asked.
async fn open() -> (Harness, PathBuf) {
    let script = json!({"rules": [
        {"when": {"system": "You keep the memory of an agent"}, "reply": {"text": "They named topics.", "delay_ms": 400}},
        {"when": {"last": "tool", "result": "*tokens_after*"}, "reply": {"text": "Shorter: {{result}}"}},
        {"when": {"contains": "compact yourself"}, "reply": {"tool_calls": [{"name": "compact_context", "arguments": {}}]}}
    ], "otherwise": {"text": "I heard."}});
    let item = |kind: &str, definition: Value| json!({"kind": kind, "definition": definition});
    let definitions = [
        item("library", json!({"id": "desk", "name": "Desk"})),
        item("project", json!({"id": "p1", "name": "P1"})),
        // What is built in takes about a thousand tokens of it.
        item(
            "model_profile",
            json!({"id": "small", "name": "Small", "provider": "scripted", "model_id": "scripted",
                "model_max_tokens": 6_000, "parameters": {"max_tokens": 500}}),
        ),
        item(
            "agent",
            json!({"id": "ida", "name": "Ida", "project_ids": ["p1"], "persona_inline": {
                "system_prompt": "You chat.", "model_profile_id": "small", "context_budget": 0.5,
                "compaction": {"chunk_size": 2, "keep_recent": 2}}}),
        ),
    ];
    open_on(script, &definitions).await
}

/// About 500 tokens.
fn topic(n: usize) -> String {
    format!("topic{n} {}", "x".repeat(2_000))
}

fn key(request: &Value) -> &str {
    request["key"].as_str().expect("a key")
}

#[tokio::test]
async fn s93_a_long_conversation_is_summarised_for_the_model_and_for_nobody_else() {
    let (fleet, record) = open().await;
    converse(&fleet, "c93", &["ida"]).await;
    for n in 1..=TURNS {
        let turn = ended(&fleet, &say(&fleet, "c93", &topic(n)).await).await;
        assert_eq!(turn["status"], "completed", "{turn}");
    }
    let all = asked(&record);
    let (summaries, replies): (Vec<&Value>, Vec<&Value>) = all.iter().partition(|one| key(one).contains(".compact."));
    assert!(!summaries.is_empty(), "nothing was summarised");
    assert!(summaries[0]["prompt"].as_str().unwrap().contains("topic1 "), "the oldest first");
    let last = replies.last().expect("a reply");
    let system = last["system"].as_str().expect("a system prompt");
    assert!(system.contains("[Context Summary") && system.contains("They named topics."), "{system}");
    let shown = last["messages"].as_u64().expect("a count");
    assert!(shown < 2 * TURNS as u64, "{shown} messages were shown");
    // Each summary has been archived, and nothing is gone from the transcript.
    let listed = fleet.get("/api/conversations/c93/messages?limit=1000&include=all").await;
    let items = listed["items"].as_array().expect("a page");
    let made: Vec<&Value> = items.iter().filter(|item| item["event_type"] == "summary").collect();
    assert_eq!(made.len(), summaries.len(), "one record for each answer");
    let transcript = said(&fleet, "c93").await;
    assert_eq!(transcript.len(), 2 * TURNS);
    assert!(transcript[0].1.starts_with("topic1 "));
    // The agent asks for it.
    let turn = ended(&fleet, &say(&fleet, "c93", "compact yourself").await).await;
    assert_eq!(turn["status"], "completed", "{turn}");
    let (_, text) = said(&fleet, "c93").await.pop().expect("an answer");
    assert!(text.contains("\"messages_compressed\"") && text.contains("\"tokens_before\""), "{text}");
}

#[tokio::test]
async fn a_compaction_that_is_killed_goes_on_and_asks_for_nothing_that_is_recorded() {
    let (mut fleet, record) = open().await;
    converse(&fleet, "ck93", &["ida"]).await;
    let mut compacting = None;
    for n in 1..=TURNS {
        let turn = say(&fleet, "ck93", &topic(n)).await;
        // The second piece is under way, so the first is recorded; or the turn has ended without.
        let is_under_way = wait("a second piece, or the end", || async {
            let asked = asked(&record);
            if asked.iter().any(|one| key(one).starts_with(&turn) && key(one).ends_with(".compact.2")) {
                return Some(true);
            }
            // It is there once its agent has taken the message.
            let answer = fleet.try_request(Method::GET, &format!("/api/turns/{turn}"), None).await.ok()?;
            let turn = if answer.body["turn"].is_object() { &answer.body["turn"] } else { &answer.body };
            (answer.status.is_success() && turn["status"] != "active").then_some(false)
        })
        .await;
        if is_under_way {
            compacting = Some(turn);
            break;
        }
    }
    let turn = compacting.expect("a turn that compacts");
    fleet.kill();
    fleet.up().await;
    let ended = ended(&fleet, &turn).await;
    assert_eq!(ended["status"], "completed", "{ended}");
    let all = asked(&record);
    let times = |number: u32| all.iter().filter(|one| key(one) == format!("{turn}.compact.{number}")).count();
    assert_eq!(times(1), 1, "what is recorded is not asked for again");
    assert!((1..=2).contains(&times(2)), "what was under way may be");
    let reply = all.iter().rfind(|one| key(one) == format!("{turn}.1")).expect("a reply");
    assert!(reply["system"].as_str().unwrap().contains("[Context Summary"), "{reply}");
    let session = ended["session_id"].as_str().expect("a session");
    assert_chain(&fleet.steps(session).await);
    let transcript = said(&fleet, "ck93").await;
    assert!(transcript[0].1.starts_with("topic1 ") && transcript.last().unwrap().1 == "I heard.");
}
