//! Turns: one after the other, side by side, and as they stream.

use futures::StreamExt;
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::desk::{converse, ended, open, said, say};
use crate::harness::{Harness, assert_chain};

#[tokio::test]
async fn s49_a_message_is_answered_and_every_step_of_it_is_there() {
    let fleet = open().await;
    converse(&fleet, "c49", &["ben"]).await;
    let turn = ended(&fleet, &say(&fleet, "c49", "hello").await).await;
    assert_eq!((&turn["status"], &turn["moves"]), (&json!("completed"), &json!(1)), "{turn}");
    assert!(
        turn["context_assembly_run_id"].is_string()
            && turn["created_at_ms"].as_i64() <= turn["completed_at_ms"].as_i64()
    );
    let pair = |who: &str, text: &str| (who.to_owned(), text.to_owned());
    assert_eq!(said(&fleet, "c49").await, [pair("user", "hello"), pair("agent", "I heard hello.")]);
    let session = turn["session_id"].as_str().unwrap().to_owned();
    let steps = fleet.steps(&session).await;
    assert_chain(&steps);
    assert!(steps.iter().any(|step| step["text"] == "I heard hello."));
}

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

#[tokio::test]
async fn s105_tokens_arrive_before_the_message_and_two_clients_see_the_same() {
    let fleet = open().await;
    converse(&fleet, "c105", &["ben"]).await;
    let (one, two) = (listen(&fleet, "c105"), listen(&fleet, "c105"));
    let asked = async {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        say(&fleet, "c105", "count slowly").await
    };
    let (one, two, turn) = tokio::join!(one, two, asked);
    for frames in [&one, &two] {
        let tokens: Vec<&Value> = frames.iter().filter(|frame| frame["type"] == "token").collect();
        assert!(tokens.len() >= 2, "{frames:?}");
        let text: String = tokens.iter().filter_map(|token| token["text"].as_str()).collect();
        assert_eq!(text, "one two three four five");
        let first = frames.iter().position(|frame| frame["type"] == "token").unwrap();
        let whole = frames.iter().position(|frame| frame["message"]["text"] == "one two three four five").unwrap();
        assert!(first < whole && frames[first]["message_id"] == frames[whole]["message"]["message_id"]);
        assert_eq!(frames[first]["turn_id"], json!(turn));
        let offsets: Vec<u64> = frames.iter().filter_map(|frame| frame["offset"].as_u64()).collect();
        assert!(offsets.windows(2).all(|pair| pair[0] < pair[1]), "{offsets:?}");
    }
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

/// Frames until the turn of the conversation has ended.
async fn listen(fleet: &Harness, conversation: &str) -> Vec<Value> {
    let address = fleet.base_url.replacen("http", "ws", 1);
    let url = format!("{address}/conversations/{conversation}?token={}", fleet.token);
    let (mut socket, _) = tokio_tungstenite::connect_async(url).await.expect("a WebSocket");
    let mut frames = Vec::new();
    let read = async {
        while let Some(Ok(message)) = socket.next().await {
            let Message::Text(text) = message else { continue };
            let frame: Value = serde_json::from_str(&text).expect("JSON");
            let is_last = frame["type"] == "event" && frame["name"] == "turn.completed";
            frames.push(frame);
            if is_last {
                break;
            }
        }
    };
    tokio::time::timeout(crate::harness::WAIT_MAX, read).await.expect("the turn ends");
    frames
}
