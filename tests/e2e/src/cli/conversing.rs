//! Conversations on the command line: begun and spoken in, and what agents ask people for.

use serde_json::{Value, json};

use super::{assert_says, read, told, with};
use crate::harness::{Harness, wait};
use crate::talk::desk;

/// Tokens that a turn of `eve` may use, and that her first reply uses.
const BOUND: u64 = 20_000;

/// An agent `ben` that pays after a yes, and asks Ana for colours; and `eve`, who may not use much.
fn definitions() -> Vec<Value> {
    let item = |kind: &str, definition: Value| json!({"kind": kind, "definition": definition});
    let action = |id: &str, more: Value| {
        let mut action = json!({"id": id, "name": id, "library_id": "desk"});
        action.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        item("action_def", action)
    };
    let task = |id: &str, action: &str| {
        let steps = json!([{"ref": "s", "action_def_id": action}]);
        item("task", json!({"id": id, "name": id, "library_id": "desk", "steps": steps}))
    };
    let tool = |id: &str, target: &str, more: Value| {
        let mut tool = json!({"id": id, "name": id, "description": id, "library_id": "desk",
            "input_schema": {"type": "object"}, "target_type": "task", "target_id": target});
        tool.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        item("tool", tool)
    };
    let human = json!({"kind": "human", "operation": "input", "config": {"question": "Which colour for {{item}}?"},
        "output_schema": {"type": "string"}});
    vec![
        item("library", json!({"id": "desk", "name": "Desk"})),
        item("project", json!({"id": "p1", "name": "P1"})),
        item("model_profile", json!({"id": "m", "name": "M", "provider": "scripted", "model_id": "scripted"})),
        action("mock-pay", json!({"kind": "mock", "operation": "return", "config": {"output": {"paid": 42}}})),
        action("ana", human),
        task("pay-task", "mock-pay"),
        task("ana-task", "ana"),
        tool("pay", "pay-task", json!({"requires_approval": {"expires_s": 600}})),
        tool("ask_ana", "ana-task", json!({})),
        tool("look", "pay-task", json!({})),
        item(
            "persona",
            json!({"id": "helper", "name": "Helper", "library_id": "desk", "system_prompt": "You help.",
                "model_profile_id": "m", "tool_ids": ["pay", "ask_ana"]}),
        ),
        item(
            "persona",
            json!({"id": "thrifty", "name": "Thrifty", "library_id": "desk", "system_prompt": "You help.",
                "model_profile_id": "m", "tool_ids": ["look"],
                "constraints": {"budgets": {"max_tokens_per_turn": BOUND}}}),
        ),
        item(
            "agent",
            json!({"id": "ben", "name": "Ben", "project_ids": ["p1"], "persona_ref": {"persona_id": "helper"}}),
        ),
        item(
            "agent",
            json!({"id": "eve", "name": "Eve", "project_ids": ["p1"], "persona_ref": {"persona_id": "thrifty"}}),
        ),
    ]
}

/// A fleet with these agents, on a script.
pub async fn open() -> Harness {
    let call = |name: &str, input: Value| json!({"tool_calls": [{"name": name, "arguments": input}]});
    let mut look = call("look", json!({}));
    look["usage"] = json!({"input_tokens": BOUND - 1, "output_tokens": 1});
    let script = json!({"rules": [
        {"when": {"last": "tool"}, "reply": {"text": "It came to {{result}}."}},
        {"when": {"contains": "colour"}, "reply": call("ask_ana", json!({"item": "the door"}))},
        {"when": {"contains": "pay"}, "reply": call("pay", json!({"amount": 5}))},
        {"when": {"contains": "look"}, "reply": look}
    ], "otherwise": {"text": "I heard {{prompt}}."}});
    desk::open_on(script, &definitions()).await.0
}

/// Begins a conversation with an agent, says something that makes them ask, and gives what they ask.
async fn asked(fleet: &Harness, agent: &str, conversation: &str, text: &str) -> Value {
    told(fleet, &["conversations", "create", agent, "--id", conversation]).await;
    told(fleet, &["say", conversation, text, "--no-wait"]).await;
    wait("the question", || async {
        let page = read(fleet, &["approvals"]).await;
        page["items"].as_array()?.iter().find(|one| one["conversation_id"] == conversation).cloned()
    })
    .await
}

/// Waits until something was said in a conversation.
async fn heard(fleet: &Harness, conversation: &str, part: &str) {
    wait(&format!("{part:?} in {conversation}"), || async {
        desk::said(fleet, conversation).await.iter().any(|(_, text)| text.contains(part)).then_some(())
    })
    .await;
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

/// Runs a command that must fail.
async fn refused(fleet: &Harness, args: &[&str], parts: &[&str]) {
    let (ok, out, err) = fleet.cli(args).await;
    assert!(!ok, "{args:?} succeeded: {out}");
    assert_says(&err, parts);
}

#[tokio::test]
async fn a_conversation_is_begun_and_what_is_said_is_answered() {
    let fleet = open().await;
    let create = ["conversations", "create", "ben", "--id", "c1", "--title", "Doors"];
    let made = read(&fleet, &create).await;
    assert_eq!((&made["conversation"]["conversation_id"], &made["created"]), (&json!("c1"), &json!(true)), "{made}");
    assert_eq!(made["started"][0]["agent_id"], "ben", "{made}");
    assert_eq!(read(&fleet, &create).await["created"], false, "once more is no other");
    assert_says(&told(&fleet, &create).await, &["c1", "ben"]);
    refused(&fleet, &["conversations", "create", "nobody"], &["invalid_request", "agents[0].agent_id", "nobody"]).await;

    assert_eq!(told(&fleet, &["say", "c1", "hello"]).await.trim(), "I heard hello.");
    let lines = told(&fleet, &["say", "c1", "once more", "--json", "--message-id", "m2"]).await;
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON lines")).collect();
    assert_eq!((&lines[0]["message_id"], &lines[0]["responders"][0]["outcome"]), (&json!("m2"), &json!("turn")));
    let answers = lines.iter().filter(|frame| frame["message"]["text"] == "I heard once more.");
    assert_eq!(answers.count(), 1, "{lines:?}");
    refused(&fleet, &["say", "nowhere", "hello"], &["conversation_not_found"]).await;

    assert_says(&told(&fleet, &["conversations"]).await, &["c1", "Doors", "active", "ben"]);
    let shown = told(&fleet, &["conversations", "show", "c1"]).await;
    assert_says(&shown, &["Doors", "hello", "I heard hello.", "I heard once more."]);

    let branch =
        read(&fleet, &["conversations", "show", "c1"]).await["detail"]["conversation"]["branch_context"].clone();
    assert_eq!(branch, json!({"project_id": "p1", "branch": "wonder/conv-c1", "base": "main"}));
    assert_says(&shown, &["wonder/conv-c1"]);

    let page = wait("a note of both turns", || async {
        let page = read(&fleet, &["memories", "ben"]).await;
        (page["items"].as_array().map(Vec::len) == Some(2)).then_some(page)
    })
    .await;
    let latest = &page["items"][0];
    assert_says(text(latest, "content"), &["Asked: once more", "Answered: I heard once more."]);
    assert_says(&told(&fleet, &["memories", "ben", "--tier", "archival"]).await, &["archival", "turn", "0.20"]);
    let found = read(&fleet, &["memories", "ben", "--search", "once more", "--limit", "1"]).await;
    assert_eq!((&found["items"][0]["id"], found["items"][0]["relevance"].is_f64()), (&latest["id"], true), "{found}");
    assert_says(
        &told(&fleet, &["memories", "ben", text(latest, "id")]).await,
        &["version", "Answered: I heard once more."],
    );
    refused(&fleet, &["memories", "ben", "nothing"], &["not_found", "/api/agents/ben/memories"]).await;
    refused(&fleet, &["memories", "ben", "--tier", "deep"], &["invalid_request", "tier", "working"]).await;

    let spending = read(&fleet, &["spending"]).await;
    assert_eq!((text(&spending, "namespace"), &spending["budget"]), ("default", &Value::Null), "{spending}");
    assert!(spending["moves"].as_u64() >= Some(2) && spending["tokens"].as_u64() > Some(0), "{spending}");
    assert_says(&told(&fleet, &["spending"]).await, &["tokens", "cost", "moves", "allowed"]);
}

#[tokio::test]
async fn a_conversation_is_completed_for_good() {
    let fleet = open().await;
    told(&fleet, &["conversations", "create", "ben", "--id", "c1"]).await;
    assert_says(&told(&fleet, &["conversations", "complete", "c1"]).await, &["c1", "completed", "ben"]);
    let again = read(&fleet, &["conversations", "complete", "c1"]).await;
    assert_eq!((text(&again, "conversation_id"), text(&again, "status")), ("c1", "completed"), "once more is no other");
    refused(&fleet, &["say", "c1", "still there?"], &["conversation_closed"]).await;
    refused(&fleet, &["conversations", "complete", "nowhere"], &["conversation_not_found"]).await;
    let list = ["conversations", "list", "--status", "completed"];
    assert_says(&told(&fleet, &list).await, &["c1"]);
    let waiting = ["conversations", "list", "--status", "waiting"];
    refused(&fleet, &waiting, &["invalid_request", "active, completed, failed"]).await;
}

#[tokio::test]
async fn agents_and_people_join_and_leave() {
    let fleet = open().await;
    told(&fleet, &["conversations", "create", "ben", "--id", "c1"]).await;
    let join = ["conversations", "join", "c1", "eve", "--id", "p-eve"];
    let joined = read(&fleet, &join).await;
    assert_eq!((&joined["joined"], &joined["started"]["agent_id"]), (&json!(true), &json!("eve")), "{joined}");
    assert_eq!(read(&fleet, &join).await["joined"], false, "once more is no other");
    assert_says(&told(&fleet, &["conversations", "join", "c1", "--user", "ana"]).await, &["ana", "user", "observer"]);
    refused(&fleet, &["conversations", "join", "c1"], &["<AGENT>"]).await;
    refused(&fleet, &["conversations", "join", "c1", "nobody"], &["agent_id", "nobody"]).await;
    let both = read(&fleet, &["say", "c1", "hello", "--no-wait"]).await;
    assert_eq!(both["responders"].as_array().map(Vec::len), Some(2), "{both}");

    // By whoever sits there, and by the seat.
    assert_says(&told(&fleet, &["conversations", "leave", "c1", "eve"]).await, &["p-eve", "eve"]);
    let page = read(&fleet, &["conversations", "participants", "c1"]).await;
    let seat = |who: &str| {
        let mut all = page["items"].as_array().expect("a page").iter();
        all.find(|one| one["agent_id"] == who || one["user_id"] == who).unwrap_or_else(|| panic!("{who}: {page}"))
    };
    assert!(seat("eve")["left_at"].is_string() && seat("ben")["left_at"].is_null(), "{page}");
    told(&fleet, &["conversations", "leave", "c1", text(seat("ana"), "participant_id")]).await;
    assert_says(&told(&fleet, &["conversations", "participants", "c1"]).await, &["ben", "eve", "ana", "p-eve"]);
    refused(&fleet, &["conversations", "leave", "c1", "nobody"], &["participant_not_found"]).await;
    let one = read(&fleet, &["say", "c1", "still there?", "--no-wait"]).await;
    assert_eq!(one["responders"].as_array().map(Vec::len), Some(1), "{one}");
}

#[tokio::test]
async fn what_is_approved_is_what_was_seen() {
    let fleet = open().await;
    let asked_for = asked(&fleet, "ben", "c1", "please pay").await;
    let (id, hash) = (text(&asked_for, "operation_id"), text(&asked_for["approval"], "arguments_hash"));
    let short = &hash[..12];
    let list = told(&fleet, &["approvals"]).await;
    assert_says(&list, &[id, "c1", "pay", "\"amount\":5", "denied at 2", short]);
    let whole = told(&fleet, &["approvals", id]).await;
    assert_says(&whole, &[id, hash, "ben", "task pay-task", "denied at 2", "\"amount\": 5"]);
    assert_eq!(read(&fleet, &["approvals", id]).await["request"]["input"], json!({"amount": 5}));

    // Nobody can be asked here: what was seen must be named.
    let look = format!("stepfleet approvals {id}");
    refused(&fleet, &["approve", id], &["--hash", &look]).await;
    refused(&fleet, &["approve", id, "--yes"], &["--hash", &look]).await;
    refused(&fleet, &["approve", id, "--hash", "0000000000000000"], &["not of what waits", &look]).await;
    refused(&fleet, &["approve", id, "--hash", &hash[..7]], &["too short"]).await;
    refused(&fleet, &["approve", id, "--hash", short, "--answer", "blue"], &["invalid_request", "answer"]).await;
    refused(&fleet, &["approve", "nothing", "--hash", short], &["operation_not_found"]).await;
    assert_eq!(read(&fleet, &["approvals", id]).await["state"], "pending");

    let yes = ["approve", id, "--hash", short, "--reason", "fine"];
    assert_says(&told(&fleet, &yes).await, &[id, "approved", "now"]);
    heard(&fleet, "c1", "It came to {\"paid\":42}.").await;
    assert_says(&told(&fleet, &yes).await, &["approved", "before; nothing was changed"]);
    refused(&fleet, &["deny", id], &["no_open_operation"]).await;
    assert_eq!(read(&fleet, &["approvals"]).await["items"], json!([]));

    let asked_for = asked(&fleet, "ben", "c2", "pay once more").await;
    let id = text(&asked_for, "operation_id");
    refused(&fleet, &["deny", id, "--hash", "0000000000000000"], &["not of what waits"]).await;
    assert_says(&told(&fleet, &["deny", id, "--reason", "not today"]).await, &[id, "denied", "now"]);
    heard(&fleet, "c2", "not today").await;
}

#[tokio::test]
async fn whoever_waits_for_an_answer_is_told_that_it_waits_for_a_yes() {
    let fleet = open().await;
    let answer = async {
        let question =
            wait("the question", || async { read(&fleet, &["approvals"]).await["items"].as_array()?.first().cloned() })
                .await;
        told(&fleet, &["deny", text(&question, "operation_id")]).await
    };
    let ((ok, out, err), _) = tokio::join!(fleet.cli(&["say", "c1", "please pay", "--with", "ben"]), answer);
    assert!(ok && out.contains("It came to"), "{out}{err}");
    assert_eq!(err.trim(), "ben waits for somebody's yes: stepfleet approvals shows what is asked");
}

#[tokio::test]
async fn a_question_is_read_and_answered() {
    let fleet = open().await;
    let asked_for = asked(&fleet, "ben", "c1", "which colour?").await;
    let (id, hash) = (text(&asked_for, "operation_id"), text(&asked_for["approval"], "arguments_hash"));
    let question = "Which colour for the door?";
    assert_eq!(asked_for["question"], question);
    for args in [vec!["approvals"], vec!["approvals", id]] {
        assert_says(&told(&fleet, &args).await, &[question]);
    }
    let yes = ["approve", id, "--hash", hash, "--answer"];
    refused(&fleet, &with(&yes, &["7"]), &["invalid_request", "answer", "does not fit its schema"]).await;
    assert_says(&told(&fleet, &with(&yes, &["blue"])).await, &["approved", "now"]);
    heard(&fleet, "c1", "It came to blue.").await;
}

#[tokio::test]
async fn a_bound_that_is_met_is_told_with_what_a_yes_means() {
    let fleet = open().await;
    let asked_for = asked(&fleet, "eve", "c1", "have a look").await;
    let (id, hash) = (text(&asked_for, "operation_id"), text(&asked_for["approval"], "arguments_hash"));
    let input = &asked_for["request"]["input"];
    assert_eq!((text(input, "bound"), &input["limit"]), ("max_tokens_per_turn", &json!(BOUND)), "{asked_for}");
    let met = format!("This turn has used {BOUND} of {BOUND} tokens (max_tokens_per_turn).");
    let whole = told(&fleet, &["approvals", id]).await;
    let yes = format!("once more (here: {BOUND} tokens)");
    assert_says(&whole, &[met.as_str(), yes.as_str(), "ends with budget_exhausted", "eve", hash]);
    assert_says(&told(&fleet, &["approve", id, "--hash", hash]).await, &["approved", "now"]);
    heard(&fleet, "c1", "It came to {\"paid\":42}.").await;
}
