//! What an agent was told in one conversation, and knows in another.

use super::desk::{self, converse, ended, say};
use crate::harness::{Harness, wait};

const FACT: &str = "The gate of the north garden opens with the code 4711.";
const QUESTION: &str = "Which code opens the gate of the north garden?";
/// More than a context has room for.
const NOTES: usize = 6;

/// What a turn's context has of memories that were searched for.
async fn found(fleet: &Harness, turn: &str) -> String {
    let context = fleet.get(&format!("/api/turns/{turn}/context")).await;
    let messages = context["context"]["request"]["messages"].as_array().expect("messages");
    let texts = messages.iter().filter_map(|message| message["content"][0]["text"].as_str());
    let mut memories = texts.filter(|text| text.starts_with("[Memories that may help]"));
    memories.next().unwrap_or_default().to_owned()
}

/// Notes are made at the end of turns.
async fn noted(fleet: &Harness, count: usize) {
    wait(&format!("{count} notes"), || async {
        let page = fleet.get("/api/agents/ben/memories").await;
        (page["items"].as_array().map(Vec::len) == Some(count)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn what_was_said_in_one_conversation_is_known_in_another_however_often_it_is_asked_there() {
    let fleet = desk::open().await;
    converse(&fleet, "memories-1", &["ben"]).await;
    ended(&fleet, &say(&fleet, "memories-1", FACT).await).await;
    noted(&fleet, 1).await;
    converse(&fleet, "memories-2", &["ben"]).await;
    for asked_before in 0..=NOTES {
        let turn = say(&fleet, "memories-2", QUESTION).await;
        let end = ended(&fleet, &turn).await;
        assert_eq!(end["status"], "completed", "{end}");
        let found = found(&fleet, &turn).await;
        assert!(found.contains("4711"), "asked {asked_before} times before: {found:?}");
        assert!(!found.contains(QUESTION), "what was said here is in the context already: {found:?}");
        noted(&fleet, 2 + asked_before).await;
    }
}
