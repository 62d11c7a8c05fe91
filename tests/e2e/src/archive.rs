//! How soon history is in LanceDB, as any other program sees it.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::{Harness, WAIT_MAX};
use crate::outside;

/// From a commit until another program finds the step.
const SOON: Duration = Duration::from_secs(3);
const SESSIONS: usize = 5;
const STEPS: usize = 3;
/// Between two looks, each of which opens the table anew.
const LOOK: Duration = Duration::from_millis(50);

#[tokio::test]
async fn a_step_is_in_lancedb_within_three_seconds_of_its_commit() {
    let fleet = Harness::start().await;
    let history = fleet.data_dir.join("history");
    let names: Vec<String> = (0..SESSIONS).map(|n| format!("soon-{n}")).collect();
    for session in &names {
        fleet.create(session, json!({ "moniker": "echo" })).await;
        for n in 1..STEPS {
            fleet.tell(session, "input", json!({ "text": n.to_string() })).await;
        }
        fleet.wait_steps(session, STEPS - 1).await;
        // Before the commit, and so a little too early.
        let asked = Instant::now();
        fleet.tell(session, "input", json!({ "text": "the last one" })).await;
        fleet.wait_steps(session, STEPS).await;
        let took = loop {
            let found = outside::iterations(&history).await;
            if found.get(session).is_some_and(|iterations| iterations.len() == STEPS) {
                break asked.elapsed();
            }
            assert!(asked.elapsed() < WAIT_MAX, "{session} is not in LanceDB: {found:?}");
            tokio::time::sleep(LOOK).await;
        };
        println!("{session}: {took:?}");
        assert!(took < SOON, "the last step of {session} was in LanceDB after {took:?}");
    }
    fleet.wait_archived().await;
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut committed = outside::committed(&fleet, &names).await;
    assert_eq!(committed.values().copied().collect::<Vec<_>>(), [STEPS as u64; SESSIONS]);
    outside::assert_gapless(&history, &committed).await;
    // The check itself: what is missing at the end, as a whole, or is there without a right to be.
    committed.insert("soon-0".into(), STEPS as u64 + 1);
    committed.insert("soon-1".into(), STEPS as u64 - 1);
    committed.insert("never".into(), 1);
    committed.remove("soon-2");
    let gaps = outside::gaps(&history, &committed).await.join("\n");
    for session in ["soon-0", "soon-1", "soon-2", "never"] {
        assert!(gaps.contains(session), "{session} is not told: {gaps}");
    }
    assert!(!gaps.contains("soon-3") && !gaps.contains("soon-4"), "{gaps}");
}
