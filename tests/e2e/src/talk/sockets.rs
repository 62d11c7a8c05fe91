//! What clients on the WebSocket of a conversation are told, and when.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::Client;
use super::desk::{converse, definitions, open_on, say};

/// Between two words of a reply.
const WORD: Duration = Duration::from_millis(300);
const FIRST: &str = "Let me look it up.";
const SECOND: &str = "It was in the last drawer.";

#[tokio::test]
async fn s105_tokens_arrive_before_the_message_and_two_clients_see_the_same() {
    let pace = WORD.as_millis() as u64;
    let script = json!({"rules": [
        {"when": {"last": "tool"}, "reply": {"text": SECOND, "delay_ms": pace, "delta_ms": pace}},
        {"when": {"contains": "where is it"}, "reply": {"text": FIRST, "delta_ms": pace,
            "tool_calls": [{"name": "look", "arguments": {"q": "x"}}]}}
    ]});
    let (fleet, _) = open_on(script, &definitions()).await;
    converse(&fleet, "c105", &["ben"]).await;
    let (one, two) = (Client::connect(&fleet, "c105").await, Client::connect(&fleet, "c105").await);
    let (one, two, turn) = tokio::join!(one.follow(), two.follow(), say(&fleet, "c105", "where is it"));
    for told in [&one, &two] {
        judge(told, &turn);
    }
    assert_eq!(only(&one, "token"), only(&two, "token"), "the same pieces");
    assert_eq!(committed(&one), committed(&two), "and the same records");
}

fn only<'t>(told: &'t [(Instant, Value)], kind: &str) -> Vec<&'t Value> {
    told.iter().map(|(_, frame)| frame).filter(|frame| frame["type"] == kind).collect()
}

fn committed(told: &[(Instant, Value)]) -> Vec<&Value> {
    told.iter().map(|(_, frame)| frame).filter(|frame| frame["offset"].is_u64()).collect()
}

/// One client's frames: pieces well before their message, and everything in its order.
fn judge(told: &[(Instant, Value)], turn: &str) {
    let place = |what: &str, is_it: &dyn Fn(&Value) -> bool| {
        let found = told.iter().position(|(_, frame)| is_it(frame));
        found.unwrap_or_else(|| panic!("no {what}: {told:?}"))
    };
    let message =
        |text: &str| place(text, &|frame: &Value| frame["type"] == "message" && frame["message"]["text"] == text);
    let mut begun = Vec::new();
    for text in [FIRST, SECOND] {
        let whole = message(text);
        let id = &told[whole].1["message"]["message_id"];
        let is_piece =
            |frame: &Value| frame["type"] == "token" && frame["kind"] == "text" && frame["message_id"] == *id;
        let pieces: Vec<usize> = (0..told.len()).filter(|at| is_piece(&told[*at].1)).collect();
        let (first, last) = (pieces[0], pieces[pieces.len() - 1]);
        assert!(pieces.len() >= 2 && last < whole, "{pieces:?} before {whole}: {told:?}");
        let words: String = pieces.iter().filter_map(|at| told[*at].1["text"].as_str()).collect();
        assert_eq!(words, text);
        assert!(pieces.iter().all(|at| told[*at].1["turn_id"] == turn), "{told:?}");
        // Several waits lie between them; all but one are left to a machine that is busy.
        assert!(told[last].0.duration_since(told[first].0) >= WORD, "{text:?} came at once");
        begun.push(first);
    }
    let call = told.iter().map(|(_, frame)| frame).find(|frame| frame["type"] == "tool_call");
    let message_id = |frame: &Value| frame["message_id"].clone();
    assert_eq!(call.map(message_id), Some(message_id(&told[message(FIRST)].1["message"])), "{told:?}");
    let order = [
        begun[0],
        place("tool call", &|frame: &Value| frame["type"] == "tool_call" && frame["calls"][0]["name"] == "look"),
        place("tool result", &|frame: &Value| {
            frame["type"] == "tool_result" && frame["is_async"] == false && frame["result"]["result"]["found"] == 42
        }),
        begun[1],
        message(SECOND),
        place("end of the turn", &|frame: &Value| frame["type"] == "event" && frame["name"] == "turn.completed"),
        told.len() - 1,
    ];
    assert!(order.windows(2).all(|pair| pair[0] < pair[1]), "{order:?}: {told:?}");
    let offsets: Vec<u64> = committed(told).iter().filter_map(|frame| frame["offset"].as_u64()).collect();
    assert!(offsets.windows(2).all(|pair| pair[0] < pair[1]), "{offsets:?}");
}
