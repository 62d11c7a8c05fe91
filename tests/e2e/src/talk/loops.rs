//! The loop of a turn, clause by clause: alone, with a tool that it waits for, and with a tool and an agent that
//! it does not wait for.

use serde_json::{Value, json};

use super::by_hand::{self, claim, finish};
use super::client::Client;
use super::desk::{asked, converse, ended, item, open_on, said, say};
use crate::harness::{Harness, assert_chain, wait};

/// An agent with tools of the library `desk`.
fn agent(id: &str, instructions: &str, tools: &[&str]) -> Value {
    let persona = json!({"system_prompt": instructions, "model_profile_id": "m", "tool_ids": tools});
    item("agent", json!({"id": id, "name": id, "project_ids": ["p1"], "persona_inline": persona}))
}

fn basics() -> Vec<Value> {
    vec![
        item("library", json!({"id": "desk", "name": "Desk"})),
        item("project", json!({"id": "p1", "name": "P1"})),
        item("model_profile", json!({"id": "m", "name": "M", "provider": "scripted", "model_id": "scripted"})),
    ]
}

/// A turn with all that belongs to it.
async fn detail(fleet: &Harness, turn: &str) -> Value {
    fleet.get(&format!("/api/turns/{turn}")).await
}

/// The same, once the turn waits like this; it does so until the test goes on.
async fn waiting(fleet: &Harness, turn: &str, phase: &str) -> Value {
    wait(&format!("turn {turn} is {phase}"), || async {
        let answer = fleet.try_request(reqwest::Method::GET, &format!("/api/turns/{turn}"), None).await.ok()?;
        (answer.status.is_success() && answer.body["turn"]["phase"] == phase).then_some(answer.body)
    })
    .await
}

/// Everything that the transcript has, as kinds and texts with their places.
async fn everything(fleet: &Harness, conversation: &str) -> Vec<(u64, String, String)> {
    let page = fleet.get(&format!("/api/conversations/{conversation}/messages?include=all&limit=1000")).await;
    let text = |one: &Value, key: &str| one[key].as_str().unwrap_or_default().to_owned();
    let items = page["items"].as_array().expect("a page");
    let row = |one: &Value| (one["offset"].as_u64().expect("a place"), text(one, "event_type"), text(one, "text"));
    items.iter().map(row).collect()
}

#[tokio::test]
async fn s49_a_message_is_answered_and_every_step_of_it_is_there() {
    // Long enough to be seen while it is at work.
    let script = json!({"rules": [], "otherwise": {"text": "I heard {{prompt}}.", "delay_ms": 1_000}});
    let mut definitions = basics();
    definitions.push(agent("ben", "You help.", &[]));
    let (fleet, record) = open_on(script, &definitions).await;
    converse(&fleet, "c49", &["ben"]).await;
    let client = Client::connect(&fleet, "c49").await;
    let (told, turn) = tokio::join!(client.follow(), say(&fleet, "c49", "hello"));
    let told: Vec<Value> = told.into_iter().map(|(_, frame)| frame).collect();
    let stands: Vec<&Value> =
        told.iter().filter(|one| one["type"] == "turn").map(|one| &one["turn"]["status"]).collect();
    let (last, before) = stands.split_last().expect("frames of the turn");
    assert!(*last == "completed" && !before.is_empty() && before.iter().all(|one| *one == "active"), "{stands:?}");

    // Memories are extracted once the user has the answer.
    let row = wait("the extraction", || async {
        let row = ended(&fleet, &turn).await;
        row["memory_extraction_run_id"].is_string().then_some(row)
    })
    .await;
    assert!(row["context_assembly_run_id"].is_string() && row["issues"].is_null(), "{row}");
    assert_eq!((&row["status"], &row["moves"], &row["turn_id"]), (&json!("completed"), &json!(1), &json!(turn)));
    let pair = |who: &str, text: &str| (who.to_owned(), text.to_owned());
    assert_eq!(said(&fleet, "c49").await, [pair("user", "hello"), pair("agent", "I heard hello.")]);

    let detail = detail(&fleet, &turn).await;
    let moves = detail["moves"].as_array().expect("moves");
    assert_eq!((moves.len(), &moves[0]["reasoning"]), (1, &json!("I heard hello.")), "{detail}");
    assert_eq!((&moves[0]["tool_calls"], &moves[0]["tool_results"]), (&json!([]), &json!([])), "{detail}");
    assert_eq!((asked(&record).len(), detail["provider_calls"].as_array().map(Vec::len)), (1, Some(1)));
    assert_eq!(detail["provider_calls"][0]["outcome"]["ok"], true, "{detail}");

    // Its steps are in this order, each made once, and so are the records of what came of them.
    let steps = fleet.steps(row["session_id"].as_str().expect("a session")).await;
    assert_chain(&steps);
    let of_turn = format!("t/{turn}/");
    let made: Vec<&str> =
        steps.iter().filter_map(|step| step["step_token"].as_str()?.strip_prefix(of_turn.as_str())).collect();
    assert_eq!(made, ["assemble", "move/1", "extract"]);
    let all = everything(&fleet, "c49").await;
    let place = |kind: &str, text: &str| {
        let found = all.iter().find(|(_, its, words)| its == kind && words == text);
        found.unwrap_or_else(|| panic!("no {kind} {text}: {all:?}")).0
    };
    let order = [
        place("status", "conversation_turn"),
        moves[0]["offset"].as_u64().expect("a place"),
        place("utterance", "I heard hello."),
        place("status", "turn.completed"),
    ];
    assert!(order.windows(2).all(|pair| pair[0] < pair[1]), "start, reply, message, end: {order:?} in {all:?}");
}

#[tokio::test]
async fn s52_a_turn_waits_for_its_tool_and_the_result_reaches_the_model() {
    let script = json!({"rules": [
        {"when": {"last": "tool"}, "reply": {"text": "The tool said {{result}}."}},
        {"when": {"contains": "use the tool"}, "reply": {"tool_calls": [{"name": "look", "arguments": {"q": "x"}}]}}
    ]});
    let mut definitions = basics();
    definitions.extend(by_hand::tool("look"));
    definitions.push(agent("ben", "You help.", &["look"]));
    let (fleet, record) = open_on(script, &definitions).await;
    converse(&fleet, "c52", &["ben"]).await;
    let turn = say(&fleet, "c52", "use the tool").await;

    let waits = waiting(&fleet, &turn, "waiting_tool").await;
    let row = &waits["turn"];
    assert_eq!((&row["status"], &row["moves"], &row["pending_operations"]), (&json!("active"), &json!(1), &json!(1)));
    let conversation = fleet.get("/api/conversations/c52").await;
    assert_eq!(conversation["conversation"]["status"], "waiting", "{conversation}");
    let task = claim(&fleet).await;
    assert_eq!((&task["tool"], &task["input"], &task["turn_id"]), (&json!("look"), &json!({"q": "x"}), &json!(turn)));
    assert_eq!(asked(&record).len(), 1, "nothing is asked while it waits");

    let result = finish(&fleet, &task, &json!({"found": 42})).await;
    assert_eq!((&result["type"], &result["outcome"]), (&json!("tool_result"), &json!("ok")), "{result}");
    let row = ended(&fleet, &turn).await;
    assert_eq!((&row["status"], &row["moves"]), (&json!("completed"), &json!(2)), "{row}");
    let requests = asked(&record);
    assert_eq!((requests.len(), &requests[1]["results"]), (2, &json!("{\"found\":42}")), "{requests:?}");
    assert_eq!(said(&fleet, "c52").await[1].1, "The tool said {\"found\":42}.");

    let detail = detail(&fleet, &turn).await;
    let moves = detail["moves"].as_array().expect("moves");
    assert_eq!((&moves[0]["tool_calls"][0]["name"], &moves[0]["reasoning"]), (&json!("look"), &Value::Null));
    assert_eq!(moves[0]["tool_results"][0]["result"], json!({"found": 42}), "{detail}");
    assert_eq!((&moves[1]["tool_calls"], moves.len()), (&json!([]), 2), "{detail}");
    let kinds: Vec<String> = everything(&fleet, "c52").await.into_iter().map(|(_, kind, _)| kind).collect();
    let shown: Vec<&str> = kinds.iter().map(String::as_str).filter(|kind| *kind != "status").collect();
    assert_eq!(shown, ["utterance", "tool_call", "tool_result", "utterance"]);
}

#[tokio::test]
async fn s67_work_in_the_background_is_acknowledged_and_told_of_later() {
    let script = json!({"rules": [
        {"when": {"last": "tool", "result": "*accepted*"}, "reply": {"text": "Working on it."}},
        {"when": {"contains": "has finished"}, "reply": {"text": "It is finished."}},
        {"when": {"contains": "background"}, "reply": {"tool_calls": [{"name": "build", "arguments": {}}]}}
    ], "otherwise": {"text": "I heard {{prompt}}."}});
    let mut definitions = basics();
    definitions.extend(by_hand::tool_in_background("build"));
    definitions.push(agent("ben", "You help.", &["build"]));
    let (fleet, _) = open_on(script, &definitions).await;
    converse(&fleet, "c67", &["ben"]).await;
    let turn = say(&fleet, "c67", "do it in the background").await;

    // The work takes until all this has been seen.
    let task = claim(&fleet).await;
    let waits = waiting(&fleet, &turn, "waiting_async").await;
    let row = &waits["turn"];
    assert_eq!((&row["status"], &row["pending_operations"]), (&json!("active"), &json!(1)), "{row}");
    let other = ended(&fleet, &say(&fleet, "c67", "hello").await).await;
    assert_eq!(other["status"], "completed", "another turn is answered meanwhile: {other}");
    let pair = |who: &str, text: &str| (who.to_owned(), text.to_owned());
    let before = [
        pair("user", "do it in the background"),
        pair("agent", "Working on it."),
        pair("user", "hello"),
        pair("agent", "I heard hello."),
    ];
    assert_eq!(said(&fleet, "c67").await, before);
    assert_eq!(detail(&fleet, &turn).await["turn"]["status"], "active");

    finish(&fleet, &task, &json!({"built": true})).await;
    let row = ended(&fleet, &turn).await;
    assert_eq!((&row["status"], &row["pending_operations"]), (&json!("completed"), &json!(0)), "{row}");
    let texts = said(&fleet, "c67").await;
    assert_eq!((texts.len(), &texts[4]), (5, &pair("agent", "It is finished.")), "{texts:?}");
}

#[tokio::test]
async fn s79_an_agent_in_the_background_is_acknowledged_and_its_answer_comes_to_the_same_turn() {
    let script = json!({"rules": [
        {"when": {"system": "You develop", "last": "tool"}, "reply": {"text": "Dev did it."}},
        {"when": {"system": "You develop"}, "reply": {"tool_calls": [{"name": "build", "arguments": {}}]}},
        {"when": {"last": "tool", "result": "*accepted*"}, "reply": {"text": "Dev is on it."}},
        {"when": {"contains": ["(ask_dev) has finished", "Dev did it."]}, "reply": {"text": "Dev has done it."}},
        {"when": {"contains": "have it done"},
         "reply": {"tool_calls": [{"name": "ask_dev", "arguments": {"task": "do it"}}]}}
    ]});
    let ask = json!({"id": "ask_dev", "name": "ask_dev", "description": "ask_dev", "library_id": "desk", "async": true,
        "input_schema": {"type": "object"}, "target_type": "agent", "target_id": "dev", "effect_class": "pure"});
    let mut definitions = basics();
    definitions.extend(by_hand::tool("build"));
    definitions.push(item("tool", ask));
    definitions.push(agent("ben", "You help.", &["ask_dev"]));
    definitions.push(agent("dev", "You develop.", &["build"]));
    let (fleet, record) = open_on(script, &definitions).await;
    converse(&fleet, "c79", &["ben"]).await;
    let turn = say(&fleet, "c79", "have it done").await;

    // Dev works for as long as its tool does, and ben has answered meanwhile.
    let task = claim(&fleet).await;
    let waits = waiting(&fleet, &turn, "waiting_async").await;
    let row = &waits["turn"];
    assert_eq!((&row["status"], &row["moves"], &row["pending_operations"]), (&json!("active"), &json!(2), &json!(1)));
    let operations = waits["operations"].as_array().expect("operations");
    assert_eq!((operations.len(), &operations[0]["tool"]), (1, &json!("ask_dev")), "{waits}");
    assert_eq!((&operations[0]["kind"], &operations[0]["is_async"]), (&json!("agent"), &json!(true)), "{waits}");
    let pair = |who: &str, text: &str| (who.to_owned(), text.to_owned());
    let acknowledged = [pair("user", "have it done"), pair("agent", "Dev is on it.")];
    assert_eq!(said(&fleet, "c79").await, acknowledged);

    finish(&fleet, &task, &json!({"built": true})).await;
    let row = ended(&fleet, &turn).await;
    assert_eq!((&row["status"], &row["moves"]), (&json!("completed"), &json!(3)), "{row}");
    assert_eq!((&row["pending_operations"], &row["issues"]), (&json!(0), &Value::Null), "{row}");
    let page = fleet.get("/api/conversations/c79/messages").await;
    let answers: Vec<&Value> =
        page["items"].as_array().expect("a page").iter().filter(|one| one["sender_type"] == "agent").collect();
    let told: Vec<&Value> = answers.iter().map(|one| &one["text"]).collect();
    assert_eq!(told, ["Dev is on it.", "Dev has done it."], "once each, in this order");
    for answer in answers {
        assert_eq!((&answer["turn_id"], &answer["agent_id"]), (&json!(turn), &json!("ben")), "{answer}");
    }

    // Dev was told its task and nothing else, in a conversation of its own that no list shows (K-19).
    let of_dev =
        asked(&record).into_iter().filter(|one| one["system"].as_str().unwrap_or_default().contains("You develop"));
    let shown: Vec<Value> = of_dev.map(|one| one["messages"].clone()).collect();
    assert_eq!(shown[0], 2, "its instructions and the task: {shown:?}");
    assert_eq!(shown.len(), 2, "before and after its tool: {shown:?}");
    let listed = fleet.get("/api/conversations").await;
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(1), "{listed}");
}
