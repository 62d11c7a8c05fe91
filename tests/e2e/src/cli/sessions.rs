//! A session from its creation to its end, named by its id.

use serde_json::json;

use super::{assert_says, read, told};
use crate::harness::{Harness, assert_chain, wait};

#[tokio::test]
async fn a_session_is_created_fed_read_held_and_ended() {
    let fleet = Harness::start().await;
    let create =
        ["create", "echo", "--session", "one", "--agent", "ana", "--action-id", "birth", "--state", r#"{"kept":1}"#];
    let accepted = read(&fleet, &create).await;
    assert_eq!(accepted, json!({ "action_id": "birth", "session_id": "one", "accepted": true }));
    // The same id again is the same action, and a person is told so.
    assert_says(&told(&fleet, &create).await, &["one", "birth", "before; nothing was changed"]);
    let input = ["input", "one", "--text", "good morning", "--action-id", "fed", "--actor", "eve"];
    assert_says(&told(&fleet, &input).await, &["one", "fed", "now"]);
    fleet.wait_processed("fed").await;
    check_reads(&fleet).await;
    check_hold(&fleet).await;
    assert_says(&told(&fleet, &["destroy", "one", "--reason", "enough"]).await, &["one", "now"]);
    fleet.wait_status("one", "stopped").await;
    let shown = read(&fleet, &["show", "one"]).await;
    assert_eq!(shown["session"]["stop_reason"], "destroyed", "{shown}");
    assert_says(&told(&fleet, &["why", "one"]).await, &["it was destroyed", "Create a new session"]);
    assert_chain(&fleet.steps("one").await);
}

/// One step was made, and all that reads knows of it.
async fn check_reads(fleet: &Harness) {
    let row = read(fleet, &["action", "fed"]).await;
    assert_eq!((&row["type"], &row["session_id"], &row["agent_id"]), (&json!("input"), &json!("one"), &json!("ana")));
    assert_eq!((&row["actor"], &row["outcome"], &row["processed"]), (&json!("eve"), &json!("ok"), &json!(true)));
    assert_eq!(row["payload"], json!({ "text": "good morning" }));
    assert_says(&told(fleet, &["action", "fed"]).await, &["input", "one", "eve", "ok", "good morning"]);

    let page = read(fleet, &["steps", "one"]).await;
    assert_eq!(page["items"].as_array().map(Vec::len), Some(1), "{page}");
    assert_eq!(page["items"][0]["text"], "good morning");
    assert_says(&told(fleet, &["steps", "one", "--latest", "--limit", "1"]).await, &["good morning", "echo/1", "ok"]);

    let shown = read(fleet, &["show", "one"]).await;
    assert_eq!((&shown["session"]["status"], &shown["session"]["agent_id"]), (&json!("running"), &json!("ana")));
    assert_eq!((&shown["spec"]["moniker"], &shown["pending_actions"]), (&json!("echo"), &json!(0)));
    assert_eq!((&shown["result"], &shown["state"]["kept"]), (&json!("good morning"), &json!(1)), "{shown}");
    assert_says(&told(fleet, &["show", "one"]).await, &["one", "ana", "echo", "waits for input", "good morning"]);

    let why = read(fleet, &["why", "one"]).await;
    assert_eq!((&why["status"], &why["cause"]), (&json!("running"), &json!({ "kind": "input" })), "{why}");
    assert_says(&told(fleet, &["why", "one"]).await, &["It waits for input.", "Send it an input action."]);
}

/// A pause holds back an input, and says why; resume lets it go.
async fn check_hold(fleet: &Harness) {
    assert_says(&told(fleet, &["pause", "one", "--reason", "lunch"]).await, &["one", "now"]);
    fleet.wait_status("one", "paused").await;
    read(fleet, &["input", "one", "--payload", r#"{"text":"good night"}"#]).await;
    let shown = read(fleet, &["show", "one"]).await;
    assert_eq!((&shown["session"]["status"], &shown["pending_actions"]), (&json!("paused"), &json!(1)), "{shown}");
    let why = read(fleet, &["why", "one"]).await;
    assert_eq!((&why["cause"]["kind"], &why["cause"]["reason"]), (&json!("paused"), &json!("lunch")), "{why}");
    assert_says(&told(fleet, &["why", "one"]).await, &["lunch", "1 accepted actions wait", "Resume it."]);
    assert_eq!(fleet.steps("one").await.len(), 1, "no step while paused");
    assert_eq!(read(fleet, &["resume", "one"]).await["session_id"], "one");
    let steps = fleet.wait_steps("one", 2).await;
    assert_eq!(steps[1]["text"], "good night");
}

#[tokio::test]
async fn guidance_reaches_one_step_and_tables_show_it() {
    let fleet = Harness::start().await;
    let create = ["create", "count", "--session", "n", "--loop-interval-ms", "200", "--config", r#"{"until":1000000}"#];
    told(&fleet, &create).await;
    for (number, now) in [(1_000, false), (5_000, true)] {
        let guidance = format!(r#"{{"set":{number}}}"#);
        let mut args = vec!["interrupt", "n", "--guidance", guidance.as_str()];
        args.extend(now.then_some("--now"));
        let accepted = read(&fleet, &args).await;
        let row = fleet.wait_processed(accepted["action_id"].as_str().expect("an id")).await;
        assert_eq!((&row["type"], &row["payload"]["guidance"]["set"]), (&json!("interrupt"), &json!(number)), "{row}");
        assert_eq!(row["payload"]["mode"] == "now", now, "{row}");
    }
    let seen = fleet.steps("n").await.len();
    wait("steps go on", || async { (fleet.steps("n").await.len() > seen).then_some(()) }).await;
    let page = read(&fleet, &["steps", "n", "--limit", "1000"]).await;
    let steps = page["items"].as_array().expect("steps");
    assert_chain(steps);
    let guided: Vec<i64> = steps.iter().filter_map(|step| step["guidance"]["set"].as_i64()).collect();
    assert_eq!(guided, [1_000, 5_000], "{page}");
    assert_says(&told(&fleet, &["steps", "n"]).await, &[r#"{"set":1000}"#, r#"{"set":5000}"#]);
    told(&fleet, &["destroy", "n"]).await;
    fleet.wait_status("n", "stopped").await;
}
