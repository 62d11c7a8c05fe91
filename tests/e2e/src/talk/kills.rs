//! SIGKILL in the middle of turns: every turn ends with its answer, no message is there twice, the steps are
//! one chain, and no model is asked again for what is recorded.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::Duration;

use futures::future::join_all;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::desk::{asked, converse, ended, open_recorded, say};
use crate::harness::{Harness, assert_chain};

const CYCLES: usize = 12;
const TEXTS: [&str; 6] =
    ["hello", "use the tool", "do it in the background", "delegate it", "count slowly", "please pay"];
/// How often somebody looks for questions in the end.
const LOOK: Duration = Duration::from_millis(100);

#[tokio::test]
async fn turns_survive_kills_without_a_hole_and_without_a_repeat() {
    let seed: u64 = std::env::var("E2E_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or_else(rand::random);
    println!("seed {seed}: repeat with E2E_SEED={seed}");
    let mut chance = StdRng::seed_from_u64(seed);
    let (mut fleet, record) = open_recorded().await;
    converse(&fleet, "ck", &["ben"]).await;
    let mut turns = Vec::new();
    // Moves that were recorded before a kill, and how often they had been asked for until then.
    let mut recorded: BTreeMap<String, usize> = BTreeMap::new();
    for _ in 0..CYCLES {
        for _ in 0..2 {
            let text = TEXTS[chance.random_range(0..TEXTS.len())];
            turns.push(say(&fleet, "ck", text).await);
        }
        // Some questions are answered before the kill, others stay open over it.
        if chance.random_bool(0.5) {
            say_yes(&fleet).await;
        }
        tokio::time::sleep(Duration::from_millis(chance.random_range(0..400))).await;
        let moves = moves(&fleet, &turns).await;
        fleet.kill();
        let requests = requests(&record);
        for key in moves {
            let count = requests.get(&key).copied().unwrap_or(0);
            recorded.entry(key).or_insert(count);
        }
        fleet.up().await;
    }
    tokio::select! {
        () = all_completed(&fleet, &turns) => {}
        () = say_yes_to_all(&fleet) => {}
    }
    check(&fleet, &turns).await;
    let requests = requests(&record);
    for (key, before) in &recorded {
        assert_eq!(requests.get(key), Some(before), "move {key} was asked for again after it was recorded");
    }
    for key in moves(&fleet, &turns).await {
        assert!(requests.contains_key(&key), "move {key} is recorded, and nobody was asked for it");
    }
    let again = requests.values().sum::<usize>() - requests.len();
    println!(
        "{} moves, {} of them recorded before a kill; {again} requests made again",
        requests.len(),
        recorded.len()
    );
}

async fn all_completed(fleet: &Harness, turns: &[String]) {
    for turn in turns {
        let turn = ended(fleet, turn).await;
        assert_eq!(turn["status"], "completed", "{turn}");
    }
}

/// Says yes to whatever is asked.
async fn say_yes(fleet: &Harness) {
    let page = fleet.get("/api/operations?kind=approval&state=pending").await;
    for asked in page["items"].as_array().expect("a page") {
        let path = format!("/api/operations/{}/approve", asked["operation_id"].as_str().expect("an id"));
        let body = json!({"arguments_hash": asked["approval"]["arguments_hash"]});
        let answer = fleet.post(&path, &body).await;
        // On a slow machine its time may be over just now.
        assert!(answer.status.is_success() || answer.status == StatusCode::CONFLICT, "{answer:?}");
    }
}

async fn say_yes_to_all(fleet: &Harness) {
    loop {
        say_yes(fleet).await;
        tokio::time::sleep(LOOK).await;
    }
}

/// The recorded moves of these turns and of those that they delegated, as `<turn>.<move>`.
async fn moves(fleet: &Harness, turns: &[String]) -> Vec<String> {
    let all = turns.iter().flat_map(|turn| [turn.clone(), format!("{turn}.1.0.t")]);
    let found = join_all(all.map(|turn| moves_of(fleet, turn))).await;
    found.into_iter().flatten().collect()
}

/// Most turns delegate nothing, and one is there only once its agent has taken the message.
async fn moves_of(fleet: &Harness, turn: String) -> Vec<String> {
    let answer = fleet.try_request(Method::GET, &format!("/api/turns/{turn}/moves"), None).await.expect("an answer");
    assert!(answer.status.is_success() || answer.status == StatusCode::NOT_FOUND, "{answer:?}");
    let moves = answer.body["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    moves.iter().map(|one| format!("{turn}.{}", one["move"])).collect()
}

/// How often models were asked for each move.
fn requests(record: &Path) -> BTreeMap<String, usize> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for request in asked(record) {
        *counts.entry(request["key"].as_str().expect("a key").to_owned()).or_default() += 1;
    }
    counts
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
