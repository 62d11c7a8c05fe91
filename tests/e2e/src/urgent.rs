//! Guidance that comes while a model is at work: `"mode": "now"` cancels the call, else the call is
//! waited for.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Harness, assert_chain, wait};

/// From urgent guidance to the step that has it.
const HEARD_MAX: Duration = Duration::from_secs(15);
/// A reply that nobody waits for in that time.
const NEVER_MS: u64 = 60_000;
/// A reply that is waited for, and that guidance overtakes meanwhile.
const SLOW_MS: u64 = 3_000;

/// A fleet whose model takes so long for its first reply and answers the next requests at once, and
/// the folder with the record of what it was asked.
async fn open(first_ms: u64) -> (Harness, TempDir) {
    let folder = TempDir::new().expect("a temporary directory");
    let first = json!({ "frame": { "next_step": "long/1", "state": { "way": "long" }, "text": "The long way." },
        "delay_ms": first_ms });
    let next = json!({ "frame": { "next_step": "end", "state": { "way": "short" },
        "text": "Short and {{guidance.tone}}.", "done": true } });
    let script = json!({ "record": "requests.jsonl", "rules": [
        { "when": { "contains": "write the report" }, "times": 1, "reply": first },
        { "when": { "contains": "write the report" }, "reply": next }
    ] });
    let path = folder.path().join("script.json");
    std::fs::write(&path, script.to_string()).expect("the script");
    let fleet = Harness::start_with(&["--script", path.to_str().expect("a plain path")]).await;
    (fleet, folder)
}

/// What the model was asked so far.
fn asked(folder: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join("requests.jsonl")).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Starts the report, and waits until the model is at work.
async fn begin(fleet: &Harness, folder: &TempDir) {
    fleet.create("report", json!({ "moniker": "run_step", "task": "write the report" })).await;
    wait("the model is asked", || async { (!asked(folder.path()).is_empty()).then_some(()) }).await;
}

#[tokio::test]
async fn urgent_guidance_cancels_the_model_call_and_is_in_the_step_at_once() {
    let (fleet, folder) = open(NEVER_MS).await;
    begin(&fleet, &folder).await;
    assert_eq!(fleet.steps("report").await.len(), 0, "the model is at work");
    let told = Instant::now();
    let guidance = json!({ "guidance": { "tone": "friendly" }, "mode": "now" });
    let action = fleet.tell("report", "interrupt", guidance).await;
    let steps = fleet.wait_steps("report", 1).await;
    let took = told.elapsed();
    assert!(took < HEARD_MAX, "the step came after {took:?}");
    assert_eq!(steps[0]["guidance"], json!({ "tone": "friendly" }), "{steps:?}");
    assert_eq!(steps[0]["text"], "Short and friendly.", "{steps:?}");
    assert_eq!(steps[0]["state"], json!({ "way": "short" }), "nothing is left of the first reply: {steps:?}");
    let row = fleet.wait_processed(action["action_id"].as_str().expect("an id")).await;
    assert_eq!(row["outcome"], "ok", "{row}");
    fleet.wait_status("report", "completed").await;
    let steps = fleet.steps("report").await;
    assert_chain(&steps);
    assert_eq!(steps.len(), 1, "{steps:?}");
    // The same step was asked for again, this time with the guidance.
    let asked = asked(folder.path());
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert_eq!(asked[0]["key"], asked[1]["key"], "{asked:?}");
    let shown = |request: &Value| request["prompt"].as_str().is_some_and(|prompt| prompt.contains("friendly"));
    assert!(!shown(&asked[0]) && shown(&asked[1]), "{asked:?}");
}

#[tokio::test]
async fn guidance_that_is_not_urgent_lets_the_model_finish_and_is_in_the_next_step() {
    let (fleet, folder) = open(SLOW_MS).await;
    begin(&fleet, &folder).await;
    fleet.tell("report", "interrupt", json!({ "guidance": { "tone": "friendly" } })).await;
    assert_eq!(fleet.steps("report").await.len(), 0, "the guidance came while the model was at work");
    fleet.wait_status("report", "completed").await;
    let steps = fleet.steps("report").await;
    assert_chain(&steps);
    let told: Vec<(&str, &Value)> =
        steps.iter().map(|step| (step["text"].as_str().unwrap_or_default(), &step["guidance"])).collect();
    assert_eq!(
        told,
        [("The long way.", &Value::Null), ("Short and friendly.", &json!({ "tone": "friendly" }))],
        "{steps:?}"
    );
    assert_eq!(asked(folder.path()).len(), 2, "nothing was asked twice");
}
