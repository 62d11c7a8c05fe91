//! A fleet with a script, and definitions of agents with tools.

use std::path::{Path, PathBuf};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::{Harness, wait};

/// As `POST /api/definitions` takes it.
pub fn item(kind: &str, definition: Value) -> Value {
    json!({"kind": kind, "definition": definition})
}

/// An agent `ben` with the tools `look` (at once), `slow` (in the background), `pay` (after a yes) and
/// `ask_dev` (another agent), and the agent `dev`.
pub fn definitions() -> Vec<Value> {
    let action = |id: &str, config: Value| {
        json!({"kind": "action_def", "definition": {"id": id, "name": id, "library_id": "desk", "kind": "mock",
            "operation": "return", "config": config, "effect_class": "pure"}})
    };
    let task = |id: &str, action: &str| {
        item(
            "task",
            json!({"id": id, "name": id, "library_id": "desk",
            "steps": [{"ref": "s", "action_def_id": action}]}),
        )
    };
    let tool = |id: &str, target: &str, more: Value| {
        let mut tool = json!({"id": id, "name": id, "description": id, "library_id": "desk",
            "input_schema": {"type": "object"}, "target_type": "task", "target_id": target, "effect_class": "pure",
            // The claim of an executor that is killed ends after this time and a grace.
            "retry": {"timeout_ms": 2_000}});
        tool.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        item("tool", tool)
    };
    vec![
        item("library", json!({"id": "desk", "name": "Desk"})),
        item("project", json!({"id": "p1", "name": "P1"})),
        item(
            "model_profile",
            json!({"id": "everyday", "name": "Everyday", "provider": "scripted",
            "model_id": "scripted"}),
        ),
        action("mock-look", json!({"output": {"found": 42}})),
        action("mock-slow", json!({"output": {"built": true}, "delay_ms": {"min": 300, "max": 300}})),
        task("look-task", "mock-look"),
        task("slow-task", "mock-slow"),
        tool("look", "look-task", json!({})),
        tool("slow", "slow-task", json!({"async": true})),
        tool("pay", "look-task", json!({"requires_approval": {"expires_s": 60}})),
        tool("ask_dev", "dev", json!({"target_type": "agent"})),
        item(
            "persona",
            json!({"id": "helper", "name": "Helper", "library_id": "desk",
            "system_prompt": "You help.", "model_profile_id": "everyday",
            "tool_ids": ["look", "slow", "pay", "ask_dev"]}),
        ),
        item(
            "agent",
            json!({"id": "ben", "name": "Ben", "project_ids": ["p1"],
            "persona_ref": {"persona_id": "helper", "library_id": "desk"}}),
        ),
        item(
            "agent",
            json!({"id": "dev", "name": "Dev", "project_ids": ["p1"],
            "persona_inline": {"system_prompt": "You develop.", "model_profile_id": "everyday"}}),
        ),
    ]
}

/// Told long enough to be watched, and ended with [`LAST_WORD`].
const WORDS: usize = 60;
pub const LAST_WORD: &str = "finis";

/// What the model says, by what it is told.
fn script() -> Value {
    let long = format!("{}{LAST_WORD}", "word ".repeat(WORDS));
    let call = |name: &str| json!({"tool_calls": [{"name": name, "arguments": {"q": "x"}}]});
    json!({"record": "requests.jsonl", "rules": [
        {"when": {"system": "You develop"}, "reply": {"text": "Dev did it."}},
        {"when": {"last": "tool", "result": "*accepted*"}, "reply": {"text": "Working on it."}},
        {"when": {"last": "tool"}, "reply": {"text": "The tool said {{result}}."}},
        {"when": {"contains": "has finished"}, "reply": {"text": "It is finished."}},
        {"when": {"contains": "use the tool"}, "reply": call("look")},
        {"when": {"contains": "background"}, "reply": call("slow")},
        {"when": {"contains": "pay"}, "reply": call("pay")},
        {"when": {"contains": "delegate"}, "reply": call("ask_dev")},
        {"when": {"contains": "at length"}, "reply": {"text": long, "delta_ms": 100}},
        {"when": {"contains": "slowly"}, "reply": {"text": "one two three four five", "delta_ms": 60}}
    ], "otherwise": {"text": "I heard {{prompt}}."}})
}

/// The script, in a file of the folder.
pub fn write_script(folder: &Path) -> PathBuf {
    let path = folder.join("script.json");
    std::fs::write(&path, script().to_string()).expect("written");
    path
}

/// A fleet on the script, with the definitions.
pub async fn open() -> Harness {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let path = write_script(folder.path());
    let fleet = Harness::start_in(&[("STEPFLEET_SCRIPT", path.to_str().expect("a plain path"))]).await;
    // The script is read again at each start.
    let kept = folder.keep();
    assert!(kept.is_dir());
    let answer = fleet.post("/api/definitions", &json!(definitions())).await;
    assert!(answer.status.is_success(), "{answer:?}");
    fleet
}

/// The same, and the record of what models are asked.
pub async fn open_recorded() -> (Harness, PathBuf) {
    open_on(script(), &definitions()).await
}

/// A fleet on a script, with definitions; and the record of what models are asked.
pub async fn open_on(mut script: Value, definitions: &[Value]) -> (Harness, PathBuf) {
    let folder = tempfile::TempDir::new().expect("a temporary directory").keep();
    let (path, record) = (folder.join("script.json"), folder.join("requests.jsonl"));
    script["record"] = json!(record);
    std::fs::write(&path, script.to_string()).expect("written");
    let fleet = Harness::start_in(&[("STEPFLEET_SCRIPT", path.to_str().expect("a plain path"))]).await;
    let answer = fleet.post("/api/definitions", &json!(definitions)).await;
    assert!(answer.status.is_success(), "{answer:?}");
    (fleet, record)
}

/// What models were asked, over all starts of the fleet.
pub fn asked(record: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(record).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// A conversation with agents in it.
pub async fn converse(fleet: &Harness, id: &str, agents: &[&str]) {
    let seats: Vec<Value> = agents.iter().map(|agent| json!({ "agent_id": agent })).collect();
    let answer = fleet.post("/api/conversations", &json!({"conversation_id": id, "agents": seats})).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
}

/// Says something; the id of the turn of the first who answers.
pub async fn say(fleet: &Harness, conversation: &str, text: &str) -> String {
    let path = format!("/api/conversations/{conversation}/messages");
    let answer = fleet.post(&path, &json!({ "text": text })).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{answer:?}");
    answer.body["responders"][0]["turn_id"].as_str().expect("a turn").to_owned()
}

/// The turn, once it has ended.
pub async fn ended(fleet: &Harness, turn: &str) -> Value {
    wait(&format!("turn {turn} to end"), || async {
        let answer = fleet.try_request(Method::GET, &format!("/api/turns/{turn}"), None).await.ok()?;
        let turn = &answer.body["turn"];
        let turn = if turn.is_object() { turn } else { &answer.body };
        (answer.status.is_success() && turn["status"] != "active").then(|| turn.clone())
    })
    .await
}

/// What was said, with who said it.
pub async fn said(fleet: &Harness, conversation: &str) -> Vec<(String, String)> {
    let page = fleet.get(&format!("/api/conversations/{conversation}/messages?limit=1000")).await;
    let text = |message: &Value, key: &str| message[key].as_str().unwrap_or_default().to_owned();
    let items = page["items"].as_array().expect("a page");
    items.iter().map(|message| (text(message, "sender_type"), text(message, "text"))).collect()
}
