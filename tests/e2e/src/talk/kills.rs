//! SIGKILL in the middle of turns: every turn ends with its answer, no message is there twice, and the
//! steps are one chain.

use std::collections::HashMap;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::Value;

use super::desk::{converse, ended, open, say};
use crate::harness::{Harness, assert_chain};

const CYCLES: usize = 12;

#[tokio::test]
async fn turns_survive_kills_without_a_hole_and_without_a_repeat() {
    let seed: u64 = std::env::var("E2E_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or_else(rand::random);
    println!("seed {seed}: repeat with E2E_SEED={seed}");
    let mut chance = StdRng::seed_from_u64(seed);
    let mut fleet = open().await;
    converse(&fleet, "ck", &["ben"]).await;
    let texts = ["hello", "use the tool", "do it in the background", "delegate it", "count slowly"];
    let mut turns = Vec::new();
    for _ in 0..CYCLES {
        for _ in 0..2 {
            let text = texts[chance.random_range(0..texts.len())];
            turns.push(say(&fleet, "ck", text).await);
        }
        tokio::time::sleep(Duration::from_millis(chance.random_range(0..400))).await;
        fleet.kill();
        fleet.up().await;
    }
    for turn in &turns {
        let turn = ended(&fleet, turn).await;
        assert_eq!(turn["status"], "completed", "{turn}");
    }
    check(&fleet, &turns).await;
}

async fn check(fleet: &Harness, turns: &[String]) {
    let page = fleet.get("/api/conversations/ck/messages?limit=1000").await;
    let messages = page["items"].as_array().expect("a page");
    let mut of_turn: HashMap<&str, usize> = HashMap::new();
    for message in messages.iter().filter(|message| message["sender_type"] == "agent") {
        *of_turn.entry(message["turn_id"].as_str().expect("a turn")).or_default() += 1;
    }
    for turn in turns {
        let said = of_turn.get(turn.as_str()).copied().unwrap_or(0);
        assert!((1..=2).contains(&said), "turn {turn} has {said} messages");
    }
    let mut ids: Vec<&str> = messages.iter().filter_map(|message| message["message_id"].as_str()).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "no message is there twice");
    let session = messages.iter().find_map(|message| message["session_id"].as_str()).expect("a session");
    let steps: Vec<Value> = fleet.steps(session).await;
    assert_chain(&steps);
}
