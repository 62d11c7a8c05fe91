//! A fresh fleet: an agent is there to talk to. Without a model it says so, and what to do about it.

use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use crate::cli::{assert_says, told};
use crate::harness::{Harness, POLL, START_MAX, command, run};
use crate::services::DATABASE;

const ASKED: &str = "What can you do?";
const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/definitions");

/// All that is defined, with versions.
async fn defined(fleet: &Harness) -> Vec<Value> {
    let mut all = Vec::new();
    for kind in ["libraries", "projects", "model-profiles", "personas", "tools", "tasks", "action-defs"] {
        let page = fleet.get(&format!("/api/{kind}")).await;
        all.extend(page["items"].as_array().expect("a page").iter().cloned());
    }
    all.push(fleet.get("/api/agents/guide").await);
    all
}

#[tokio::test]
async fn one_command_talks_to_an_agent_that_says_how_to_connect_a_model() {
    let mut fleet = Harness::start().await;
    if fleet.setting(DATABASE).is_some() {
        return; // A shared database is prepared by `migrate`, which defines nobody.
    }
    let before = defined(&fleet).await;
    assert!(before.iter().all(|one| one["version"] == 1), "{before:?}");
    let out = told(&fleet, &["say", "hello", ASKED, "--with", "guide"]).await;
    let ways = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENAI_BASE_URL"];
    assert_says(&out, &["This answer is scripted", ASKED]);
    assert_says(&out, &ways);
    assert!(!out.contains("next_step"), "{out}");
    assert_says(fleet.get("/health").await["provider"].as_str().unwrap_or_default(), &ways);

    // It goes on, whether it is to begin or not, and over a restart.
    told(&fleet, &["say", "hello", "And what else?", "--with", "guide"]).await;
    let mine = json!({"id": "guide", "name": "Mine", "project_ids": ["home"], "persona_ref": {"persona_id": "guide"}});
    assert!(fleet.post("/api/agents", &mine).await.status.is_success());
    assert!(fleet.stop().await.success());
    fleet.up().await;
    assert_says(&told(&fleet, &["say", "hello", "Still there?"]).await, &["scripted", "Still there?"]);
    let page = fleet.get("/api/conversations/hello/messages").await;
    assert_eq!(page["items"].as_array().expect("a page").len(), 6, "{page}");

    // The second start wrote nothing: what was changed stays so.
    let mut after = defined(&fleet).await;
    let guide = after.pop().expect("the agent");
    assert_eq!((&guide["version"], &guide["definition"]["name"]), (&json!(2), &json!("Mine")), "{guide}");
    assert_eq!(after, before[..before.len() - 1]);
}

/// Starts it in front of a reader that has ended, as `head` may have.
fn unread(mut command: Command) -> Child {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
    drop(child.stdout.take());
    child
}

#[tokio::test]
async fn a_fleet_whose_banner_nobody_reads_runs_all_the_same() {
    let scratch = tempfile::TempDir::new().expect("a temporary directory");
    let (data_dir, ready) = (scratch.path().join("data"), scratch.path().join("ready.json"));
    let mut up = command();
    up.current_dir(scratch.path()).args(["up", "--listen", "127.0.0.1:0", "--log", "warn"]);
    up.arg("--data-dir").arg(&data_dir).arg("--ready-file").arg(&ready);
    let mut fleet = unread(up);
    let started = Instant::now();
    while !ready.exists() && fleet.try_wait().is_ok_and(|end| end.is_none()) && started.elapsed() < START_MAX {
        tokio::time::sleep(POLL).await;
    }
    let (ok, out, err) = run(scratch.path(), &data_dir, &["sessions"]).await;
    let mut list = command();
    list.current_dir(scratch.path()).arg("sessions").arg("--data-dir").arg(&data_dir);
    let list = unread(list).wait_with_output().expect("a command");
    // Before anything is judged: nobody else ends it.
    drop(fleet.kill());
    let said = fleet.wait_with_output().expect("the fleet");
    assert!(ok, "{out}{err}{}", String::from_utf8_lossy(&said.stderr));
    assert!(list.status.success() && list.stderr.is_empty(), "{list:?}");
}

#[tokio::test]
async fn the_examples_answer_with_whatever_provider_there_is() {
    let fleet = Harness::start().await;
    told(&fleet, &["apply", "-f", EXAMPLES, "--yes"]).await;
    let out = told(&fleet, &["say", "desk", "Who may merge?", "--with", "lib"]).await;
    assert_says(&out, &["This answer is scripted", "Who may merge?"]);
}

#[tokio::test]
async fn the_tools_of_the_examples_run() {
    let script = tempfile::NamedTempFile::new().expect("a file");
    let rules = json!({"rules": [
        {"when": {"last": "tool"}, "reply": {"text": "The tool said {{result}}."}},
        {"when": {"contains": "Write"}, "reply": {"tool_calls": [
            {"name": "write_handbook", "arguments": {"page": "Deploys", "text": "We deploy on Mondays."}}]}},
        {"when": {"contains": "When"}, "reply": {"tool_calls": [
            {"name": "search_handbook", "arguments": {"question": "deploy on Mondays"}}]}}
    ]});
    std::fs::write(script.path(), rules.to_string()).expect("the script");
    let fleet = Harness::start_with(&["--script", script.path().to_str().expect("text")]).await;
    told(&fleet, &["apply", "-f", EXAMPLES, "--yes"]).await;

    told(&fleet, &["say", "desk", "Write that down.", "--with", "lib", "--no-wait"]).await;
    let asked = crate::harness::wait("the question", || async {
        let page = fleet.get("/api/operations?kind=approval&state=pending").await;
        page["items"].as_array()?.first().cloned()
    })
    .await;
    let path = format!("/api/operations/{}/approve", asked["operation_id"].as_str().expect("an id"));
    let yes = fleet.post(&path, &json!({ "arguments_hash": asked["approval"]["arguments_hash"] })).await;
    assert!(yes.status.is_success(), "{yes:?}");
    crate::harness::wait("the page to be written", || async {
        let page = fleet.get("/api/conversations/desk/messages").await;
        page.to_string().contains("The tool said").then_some(())
    })
    .await;
    let out = told(&fleet, &["say", "desk", "When do we deploy?"]).await;
    assert_says(&out, &["The tool said", "\"pages\"", "We deploy on Mondays."]);
}
