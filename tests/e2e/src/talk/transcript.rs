//! The transcript of a conversation, as clients page through it.

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::desk::{ended, open, say};
use crate::harness::Harness;

const PATH: &str = "/api/conversations/c102/messages";

async fn list(fleet: &Harness, query: &str) -> Vec<Value> {
    fleet.get(&format!("{PATH}?limit=1000{query}")).await["items"].as_array().expect("a page").clone()
}

/// The same, a few at a time, by the cursor.
async fn paged(fleet: &Harness, limit: usize, query: &str) -> Vec<Value> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = fleet.get(&format!("{PATH}?limit={limit}{query}{cursor}")).await;
        let items = page["items"].as_array().expect("a page");
        assert!(items.len() <= limit, "{page}");
        all.extend(items.iter().cloned());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return all,
        }
    }
}

fn offsets(items: &[Value]) -> Vec<u64> {
    items.iter().map(|one| one["offset"].as_u64().expect("a place")).collect()
}

/// A conversation that nobody takes part in yet, and who comes then.
async fn populate(fleet: &Harness) {
    let answer = fleet.post("/api/conversations", &json!({"conversation_id": "c102", "user_id": "ana"})).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
    let path = "/api/conversations/c102/participants";
    for (body, status) in [
        (json!({"participant_id": "p-ben", "agent_id": "ben"}), StatusCode::CREATED),
        (json!({"participant_id": "p-bob", "user_id": "bob"}), StatusCode::CREATED),
        (json!({"participant_id": "p-ben", "agent_id": "ben"}), StatusCode::OK),
    ] {
        let answer = fleet.post(path, &body).await;
        assert_eq!(answer.status, status, "{body}: {answer:?}");
    }
    let page = fleet.get(path).await;
    let who = |one: &Value| one["user_id"].as_str().or(one["agent_id"].as_str()).unwrap_or_default().to_owned();
    let mut here: Vec<String> = page["items"].as_array().expect("a page").iter().map(who).collect();
    here.sort();
    assert_eq!(here, ["ana", "ben", "bob"], "{page}");
}

#[tokio::test]
async fn s102_what_was_said_is_listed_in_order_by_pages_and_from_a_time_on() {
    let fleet = open().await;
    populate(&fleet).await;
    for text in ["one", "use the tool", "two", "three"] {
        let turn = ended(&fleet, &say(&fleet, "c102", text).await).await;
        assert_eq!(turn["status"], "completed", "{turn}");
    }
    let said = list(&fleet, "").await;
    let texts: Vec<&str> = said.iter().filter_map(|one| one["text"].as_str()).collect();
    let answers = ["I heard one.", "The tool said {\"found\":42}.", "I heard two.", "I heard three."];
    let expected = ["one", answers[0], "use the tool", answers[1], "two", answers[2], "three", answers[3]];
    assert_eq!(texts, expected);
    assert!(said.iter().all(|one| one["event_type"] == "utterance"), "{said:?}");

    let everything = list(&fleet, "&include=all").await;
    let places = offsets(&everything);
    assert!(places.windows(2).all(|pair| pair[0] < pair[1]), "{places:?}");
    let kinds = |kind: &str| everything.iter().filter(|one| one["event_type"] == kind).cloned().collect::<Vec<Value>>();
    assert_eq!(kinds("utterance"), said, "the same messages, at the same places");
    let (calls, results) = (kinds("tool_call"), kinds("tool_result"));
    assert_eq!((calls.len(), &calls[0]["data"]["tool_calls"][0]["name"]), (1, &json!("look")), "{calls:?}");
    assert_eq!((results.len(), &results[0]["data"]["result"]), (1, &json!({"found": 42})), "{results:?}");
    let ends = kinds("status").iter().filter(|one| one["text"] == "turn.completed").count();
    assert_eq!(ends, 4, "{everything:?}");

    for (what, whole) in [("", &said), ("&include=all", &everything)] {
        for limit in [1, 3, 8] {
            assert_eq!(&paged(&fleet, limit, what).await, whole, "{limit} at a time{what}");
            let mut back = paged(&fleet, limit, &format!("{what}&order=desc")).await;
            back.reverse();
            assert_eq!(&back, whole, "{limit} at a time{what}, the newest first");
        }
        // From the time of one of them on: it, and what is not older.
        let since = whole[whole.len() / 2]["created_at"].as_str().expect("a time");
        let later: Vec<Value> = whole.iter().filter(|one| one["created_at"].as_str() >= Some(since)).cloned().collect();
        assert!(!later.is_empty() && later.len() < whole.len(), "{since}: {whole:?}");
        assert_eq!(list(&fleet, &format!("{what}&since={since}")).await, later, "since {since}{what}");
        assert_eq!(paged(&fleet, 2, &format!("{what}&since={since}")).await, later, "since {since}{what}, by pages");
    }
}
