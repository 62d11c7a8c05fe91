//! `--agent` stands for the newest session of an agent, whatever it is doing.

use std::collections::BTreeSet;

use serde_json::json;

use super::{assert_says, read, told};
use crate::harness::Harness;

#[tokio::test]
async fn control_by_agent_is_for_its_newest_session_alone() {
    let fleet = Harness::start().await;
    for session in ["old", "new"] {
        let create = ["create", "count", "--session", session, "--agent", "ana", "--loop-interval-ms", "100"];
        told(&fleet, &create).await;
        fleet.wait_steps(session, 1).await;
    }
    let accepted = read(&fleet, &["interrupt", "--agent", "ana", "--guidance", r#"{"set":1000}"#]).await;
    assert_eq!((&accepted["session_id"], &accepted["accepted"]), (&json!("new"), &json!(true)), "{accepted}");
    fleet.wait_processed(accepted["action_id"].as_str().expect("an id")).await;
    for (session, times) in [("new", 1), ("old", 0)] {
        let steps = fleet.steps(session).await;
        assert_eq!(steps.iter().filter(|step| !step["guidance"].is_null()).count(), times, "{session}: {steps:?}");
    }
    assert_says(&told(&fleet, &["pause", "--agent", "ana", "--reason", "lunch"]).await, &["new", "now"]);
    fleet.wait_status("new", "paused").await;
    assert_eq!(fleet.status("old").await, "running");
    assert_says(&told(&fleet, &["resume", "--agent", "ana"]).await, &["new", "now"]);
    fleet.wait_status("new", "running").await;
    let ended = read(&fleet, &["destroy", "--agent", "ana", "--reason", "over"]).await;
    assert_eq!(ended["session_id"], "new", "{ended}");
    fleet.wait_status("new", "stopped").await;
    assert_eq!(fleet.status("old").await, "running");
    // The newest one has ended. No older one takes its place unasked.
    let (ok, out, err) = fleet.cli(&["pause", "--agent", "ana"]).await;
    assert!(!ok, "{out}");
    assert_says(&err, &["session_ended", "new", "create another"]);
    assert_eq!(fleet.status("old").await, "running");
    // Reading is for all of them.
    let page = read(&fleet, &["steps", "--agent", "ana", "--limit", "1000"]).await;
    let steps = page["items"].as_array().expect("steps");
    let sessions: BTreeSet<&str> = steps.iter().filter_map(|step| step["session_id"].as_str()).collect();
    assert_eq!(sessions, BTreeSet::from(["old", "new"]));
    assert!(steps.iter().all(|step| step["agent_id"] == "ana"), "{page}");
}

#[tokio::test]
async fn an_input_by_agent_is_for_its_newest_session_alone() {
    let fleet = Harness::start().await;
    for session in ["old", "new"] {
        told(&fleet, &["create", "echo", "--session", session, "--agent", "ben"]).await;
        fleet.wait_status(session, "running").await;
    }
    told(&fleet, &["create", "echo", "--session", "other", "--agent", "cleo"]).await;
    let accepted = read(&fleet, &["input", "--agent", "ben", "--text", "hello", "--action-id", "in"]).await;
    assert_eq!(accepted, json!({ "action_id": "in", "session_id": "new", "accepted": true }));
    fleet.wait_processed("in").await;
    let row = read(&fleet, &["action", "in"]).await;
    assert_eq!((&row["session_id"], &row["agent_id"]), (&json!("new"), &json!("ben")), "{row}");
    assert_eq!(fleet.steps("new").await[0]["text"], "hello");
    for session in ["old", "other"] {
        assert!(fleet.steps(session).await.is_empty(), "{session} was told, too");
        // Whoever has made no step yet is there all the same.
        assert_eq!(read(&fleet, &["steps", session]).await["items"], json!([]));
    }
    assert_says(&told(&fleet, &["steps", "--agent", "ben"]).await, &["hello"]);
}
