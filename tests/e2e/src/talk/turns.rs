//! Turns that are started by actions, and their ids.

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::desk::{converse, ended, open, said, say};
use crate::harness::assert_chain;

#[tokio::test]
async fn a_session_that_converses_needs_no_definitions() {
    let fleet = open().await;
    let accepted = fleet.create("alone", json!({"moniker": "converse"})).await;
    assert_eq!(accepted["accepted"], true);
    fleet.tell("alone", "input", json!({"text": "hello"})).await;
    let steps = fleet.wait_steps("alone", 3).await;
    assert_chain(&steps);
    crate::harness::wait("an answer", || async {
        said(&fleet, "alone").await.iter().any(|(_, text)| text == "I heard hello.").then_some(())
    })
    .await;
}

/// Its records are in the log: a second turn under the same id would find them instead of its own.
#[tokio::test]
async fn the_id_of_a_turn_is_used_once() {
    let fleet = open().await;
    converse(&fleet, "c-once", &["ben"]).await;
    let session = ended(&fleet, &say(&fleet, "c-once", "hello").await).await["session_id"].clone();
    let input =
        |id: &str, payload: Value| json!({"type": "input", "action_id": id, "session_id": session, "payload": payload});
    let first = input("a1", json!({"text": "hello", "turn_id": "a2"}));
    fleet.act(first.clone()).await;
    assert_eq!(ended(&fleet, "a2").await["status"], "completed");
    assert_eq!(fleet.act(first).await["accepted"], false, "a repeat is none");
    for taken in [input("a2", json!({"text": "hello"})), input("a3", json!({"text": "hello", "turn_id": "a2"}))] {
        let answer = fleet.post("/api/actions", &taken).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{taken}: {answer:?}");
        assert!(answer.body["detail"].as_str().unwrap().contains("a2 is the id of a turn"), "{answer:?}");
    }
    let forged = json!({"text": "free of charge", "message_id": "a4.1.call"});
    let answer = fleet.post("/api/conversations/c-once/messages", &forged).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST, "the record of a call has such an id: {answer:?}");
}

#[tokio::test]
async fn each_step_of_a_conversation_names_its_turn() {
    let fleet = open().await;
    converse(&fleet, "c-steps", &["ben"]).await;
    let first = ended(&fleet, &say(&fleet, "c-steps", "use the tool").await).await;
    let session = first["session_id"].as_str().expect("a session");
    // The input, its context, the call, the result, the answer, what is remembered.
    let steps = fleet.wait_steps(session, 6).await;
    assert!(steps.iter().all(|step| step["turn_id"] == first["turn_id"]), "{steps:?}");
    let second = ended(&fleet, &say(&fleet, "c-steps", "hello").await).await;
    let steps = fleet.wait_steps(session, 10).await;
    assert!(steps[6..].iter().all(|step| step["turn_id"] == second["turn_id"]), "{steps:?}");
    // As an operator reads them.
    let (ok, table, err) = fleet.cli(&["steps", session]).await;
    assert!(ok, "{table}{err}");
    for (turn, steps) in [(&first, 6), (&second, 4)] {
        let id = turn["turn_id"].as_str().expect("an id");
        assert_eq!(table.lines().filter(|line| line.contains(&format!(" {id} "))).count(), steps, "{table}");
    }
}
