//! Commands that cannot be carried out: an exit code that scripts see, a text that says what to do.

use super::{assert_says, told, with};
use crate::harness::Harness;

/// Those who are asked for do not exist.
const NO_SESSION: &[&str] = &["session_not_found", "no session nobody", "GET /api/sessions"];
const NO_AGENT: &[&str] = &["agent_not_found", "agent nobody has no session", "GET /api/agents"];

/// Runs a command that must fail, for people and for programs.
async fn refused(fleet: &Harness, args: &[&str], parts: &[&str]) {
    for args in [args.to_vec(), with(args, &["--json"])] {
        let (ok, out, err) = fleet.cli(&args).await;
        assert!(!ok, "{args:?} succeeded: {out}");
        assert_eq!(out, "", "{args:?} has no answer");
        assert_says(&err, parts);
    }
}

#[tokio::test]
async fn who_is_not_there_is_named_with_what_to_do() {
    let fleet = Harness::start().await;
    let verbs: [&[&str]; 5] =
        [&["input", "--text", "x"], &["interrupt", "--guidance", "{}"], &["pause"], &["resume"], &["destroy"]];
    for verb in verbs {
        refused(&fleet, &with(verb, &["nobody"]), NO_SESSION).await;
        refused(&fleet, &with(verb, &["nobody"]), &["create it first"]).await;
        refused(&fleet, &with(verb, &["--agent", "nobody"]), NO_AGENT).await;
        refused(&fleet, verb, &["name a session, or an agent with --agent"]).await;
    }
    for verb in ["show", "why", "steps"] {
        refused(&fleet, &[verb, "nobody"], &["session_not_found", "GET /api/sessions"]).await;
    }
    for verb in ["show", "why"] {
        refused(&fleet, &[verb], &["<SESSION>", "--help"]).await;
    }
    refused(&fleet, &["action", "nothing"], &["action_not_found", "no action nothing"]).await;
    refused(&fleet, &["steps"], &["name a session, or an agent with --agent"]).await;
    let url = "http://127.0.0.1:1";
    refused(&fleet, &["show", "nobody", "--url", url], &["no fleet answers", url, "stepfleet up", "--url"]).await;
}

#[tokio::test]
async fn what_cannot_be_done_is_refused_with_the_reason_and_the_remedy() {
    let fleet = Harness::start().await;
    told(&fleet, &["create", "count", "--session", "over", "--config", r#"{"until":1}"#]).await;
    told(&fleet, &["create", "count", "--session", "deaf", "--agent", "ana", "--loop-interval-ms", "1000"]).await;
    fleet.wait_status("over", "completed").await;
    for verb in ["pause", "resume", "destroy"] {
        refused(&fleet, &[verb, "over"], &["session_ended", "over", "create another"]).await;
    }
    let cases: &[(&[&str], &[&str])] = &[
        (&["input", "deaf", "--text", "x"], &["input_not_taken", "takes no input", "interrupt instead"]),
        (&["input", "--agent", "ana", "--text", "x"], &["input_not_taken", "interrupt instead"]),
        (&["input", "deaf"], &["--text", "--help"]),
        (&["input", "deaf", "--payload", "{"], &["\"{\" is not JSON"]),
        (&["interrupt", "deaf", "--guidance", "dogs"], &["\"dogs\" is not JSON"]),
        (&["pause", "deaf", "--agent", "ana"], &["cannot be used with", "--agent"]),
        (&["create", "echo", "--session", "deaf"], &["session_exists", "deaf", "Choose another session_id"]),
        (&["create", "tell_a_lie"], &["unknown_moniker", "\"tell_a_lie\"", "tell_a_joke"]),
        (&["create", "digest"], &["invalid_request", "payload.config.paths", "list files"]),
        (&["create", "count", "--config", "{\"until\":\"ten\"}"], &["payload.config.until", "\"ten\""]),
    ];
    for (args, parts) in cases {
        refused(&fleet, args, parts).await;
    }
    // What to do is said once.
    let remedies: &[(&[&str], &str)] =
        &[(&["pause", "over"], "another"), (&["create", "echo", "--session", "deaf"], "another session_id")];
    for (args, remedy) in remedies {
        let (_, _, err) = fleet.cli(args).await;
        assert_eq!(err.to_lowercase().matches(remedy).count(), 1, "{args:?}: {err}");
    }
    // Nothing came of any of it.
    let list = fleet.get("/api/sessions").await;
    assert_eq!(list["items"].as_array().map(Vec::len), Some(2), "{list}");
    assert_eq!((fleet.status("deaf").await.as_str(), fleet.status("over").await.as_str()), ("running", "completed"));
    assert!(fleet.steps("deaf").await.iter().all(|step| step["guidance"].is_null()));
}
