//! Create, interrupt, pause, resume, destroy.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::frames::serve;
use crate::harness::{Harness, assert_chain, wait};

/// A joke loop that is quick enough to test with.
fn jokes(subject: &str) -> Value {
    json!({ "moniker": "tell_a_joke", "state": { "subject": subject }, "loop_interval_ms": 50 })
}

fn text(step: &Value) -> String {
    step["text"].as_str().unwrap_or_default().to_lowercase()
}

#[tokio::test]
async fn s01_create_runs_within_two_seconds_and_steps_count_up() {
    s01(&Harness::start().await).await;
}

/// S-01 on a fleet of any kind.
pub async fn s01(fleet: &Harness) {
    let asked = Instant::now();
    let accepted = fleet.create("s01", jokes("cats")).await;
    assert_eq!(accepted["session_id"], "s01");
    assert_eq!(accepted["accepted"], true);
    fleet.wait_status("s01", "running").await;
    assert!(asked.elapsed() < Duration::from_secs(2), "running after {:?}", asked.elapsed());
    let steps = fleet.wait_steps("s01", 3).await;
    assert_chain(&steps);
    assert!(steps.iter().all(|step| text(step).contains("cats")), "{steps:?}");
}

#[tokio::test]
async fn s02_guidance_is_seen_by_exactly_one_step_and_changes_what_follows() {
    let fleet = Harness::start().await;
    fleet.create("s02", jokes("cats")).await;
    fleet.wait_steps("s02", 2).await;
    let action = fleet.tell("s02", "interrupt", json!({ "guidance": { "subject": "dogs" } })).await;
    fleet.wait_processed(action["action_id"].as_str().unwrap()).await;
    let seen = fleet.steps("s02").await.len();
    let steps = fleet.wait_steps("s02", seen + 3).await;
    let guided: Vec<usize> = (0..steps.len()).filter(|at| !steps[*at]["guidance"].is_null()).collect();
    assert_eq!(guided.len(), 1, "{steps:?}");
    assert_eq!(steps[guided[0]]["guidance"], json!({ "subject": "dogs" }));
    for (at, step) in steps.iter().enumerate() {
        let expected = if at < guided[0] { "cats" } else { "dogs" };
        assert!(text(step).contains(expected), "step {at}: {step}");
    }
}

#[tokio::test]
async fn s03_pause_holds_the_loop_and_resume_goes_on_without_gap() {
    let fleet = Harness::start().await;
    fleet.create("s03", jokes("cats")).await;
    fleet.wait_steps("s03", 2).await;
    let pause = fleet.tell("s03", "pause", json!({ "reason": "lunch" })).await;
    fleet.wait_processed(pause["action_id"].as_str().unwrap()).await;
    assert_eq!(fleet.status("s03").await, "paused");
    let held = fleet.steps("s03").await.len();
    // A second session of the same pace is the clock: five of its intervals.
    fleet.create("s03-clock", jokes("clocks")).await;
    fleet.wait_steps("s03-clock", 6).await;
    assert_eq!(fleet.steps("s03").await.len(), held, "no step while paused");
    let why = fleet.get("/api/sessions/s03/why").await;
    assert_eq!(why["cause"]["kind"], "paused");
    assert_eq!(why["cause"]["reason"], "lunch");
    fleet.tell("s03", "resume", json!({})).await;
    assert_chain(&fleet.wait_steps("s03", held + 3).await);
}

#[tokio::test]
async fn s05_destroy_of_a_paused_session_passes_stopping_and_ends_it() {
    let fleet = Harness::start().await;
    fleet.create("s05", jokes("cats")).await;
    fleet.wait_steps("s05", 1).await;
    fleet.tell("s05", "pause", json!({})).await;
    fleet.wait_status("s05", "paused").await;
    let held = fleet.steps("s05").await.len();
    let before = fleet.get("/health").await["live_sessions"].as_u64().unwrap();
    fleet.tell("s05", "destroy", json!({ "reason": "enough" })).await;
    fleet.wait_status("s05", "stopped").await;
    assert_eq!(
        statuses(&fleet, "s05").await[..].iter().rev().take(2).rev().collect::<Vec<_>>(),
        ["stopping", "stopped"]
    );
    assert_eq!(fleet.steps("s05").await.len(), held);
    wait("the session left the live ones", || async {
        (fleet.get("/health").await["live_sessions"].as_u64().unwrap() == before - 1).then_some(())
    })
    .await;
    let late = fleet.post("/api/sessions/s05/pause", &json!({})).await;
    assert_eq!((late.status.as_u16(), &late.body["code"]), (409, &json!("session_ended")));
}

/// The statuses a session went through, from its events.
async fn statuses(fleet: &Harness, session: &str) -> Vec<String> {
    let (ok, out, err) = fleet.cli(&["tail", session, "--json"]).await;
    assert!(ok, "{err}");
    let events = out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let changes = events.filter(|event| event["type"] == "status");
    changes.map(|event| event["data"]["status"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Sessions that a restart must leave as they are.
const AT_REST: [(&str, &str); 4] =
    [("pauses", "paused"), ("ended", "completed"), ("destroyed", "stopped"), ("fails", "error")];

async fn steps_at_rest(fleet: &Harness) -> Vec<usize> {
    let mut counts = Vec::new();
    for (session, _) in AT_REST {
        counts.push(fleet.steps(session).await.len());
    }
    counts
}

#[tokio::test]
async fn s45_a_restart_revives_what_was_live_and_nothing_else() {
    let mut fleet = Harness::start().await;
    let before = s45_before(&fleet).await;
    assert!(fleet.stop().await.success(), "{}", fleet.log());
    fleet.up().await;
    s45_after(&fleet, &before).await;
}

/// What S-45 compares: steps of the sessions at rest, and calls of the step function that fails.
pub struct Before {
    held: Vec<usize>,
    asked: usize,
    calls: Arc<AtomicUsize>,
}

/// S-45 on a fleet of any kind, until it is stopped as a whole.
pub async fn s45_before(fleet: &Harness) -> Before {
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = calls.clone();
    // No frame, so the session that gets it is in error.
    let url = serve(move |_| {
        counter.fetch_add(1, Ordering::SeqCst);
        json!({})
    });
    fleet.create("runs", jokes("cats")).await;
    fleet.create("pauses", jokes("dogs")).await;
    fleet.create("ended", json!({ "moniker": "count", "config": { "until": 3 } })).await;
    fleet.create("destroyed", jokes("owls")).await;
    fleet.create("fails", json!({ "moniker": "http", "config": { "url": url } })).await;
    for session in ["runs", "pauses", "destroyed"] {
        fleet.wait_steps(session, 2).await;
    }
    fleet.tell("pauses", "pause", json!({})).await;
    fleet.tell("destroyed", "destroy", json!({})).await;
    for (session, status) in AT_REST {
        fleet.wait_status(session, status).await;
    }
    Before { held: steps_at_rest(fleet).await, asked: calls.load(Ordering::SeqCst), calls }
}

/// S-45 once it runs again.
pub async fn s45_after(fleet: &Harness, Before { held, asked, calls }: &Before) {
    let before = fleet.steps("runs").await.len();
    assert_chain(&fleet.wait_steps("runs", before + 3).await);
    assert_eq!(steps_at_rest(fleet).await, *held, "only what ran goes on");
    for (session, status) in AT_REST {
        assert_eq!(fleet.status(session).await, status, "{session}");
    }
    assert_eq!(calls.load(Ordering::SeqCst), *asked, "what failed is not tried again unasked");
    fleet.tell("pauses", "resume", json!({})).await;
    assert_chain(&fleet.wait_steps("pauses", held[0] + 2).await);
    fleet.tell("fails", "resume", json!({})).await;
    wait("the failed step is tried again", || async { (calls.load(Ordering::SeqCst) > *asked).then_some(()) }).await;
}
