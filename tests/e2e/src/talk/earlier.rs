//! What a request holds of the turns before it: what they called, and what came of it.

use serde_json::{Value, json};

use super::desk::{asked, converse, ended, item, open_on, open_recorded, said, say};
use crate::harness::Harness;

/// The messages of a turn's context.
async fn context(fleet: &Harness, turn: &str) -> Vec<Value> {
    let context = fleet.get(&format!("/api/turns/{turn}/context")).await;
    context["context"]["request"]["messages"].as_array().expect("messages").clone()
}

fn roles(messages: &[Value]) -> Vec<&str> {
    messages.iter().filter_map(|message| message["role"].as_str()).collect()
}

/// What the model was asked for the `number`th reply of a turn.
fn request(all: &[Value], turn: &str, number: u32) -> Value {
    let key = format!("{turn}.{number}");
    all.iter().find(|one| one["key"] == key.as_str()).unwrap_or_else(|| panic!("{key} was not asked")).clone()
}

#[tokio::test]
async fn k09_a_turn_is_told_what_earlier_turns_called_and_what_came_of_it() {
    let (mut fleet, record) = open_recorded().await;
    converse(&fleet, "c09", &["ben"]).await;
    let first = ended(&fleet, &say(&fleet, "c09", "use the tool").await).await;
    assert_eq!((&first["status"], &first["moves"]), (&json!("completed"), &json!(2)), "{first}");
    let second = say(&fleet, "c09", "hello").await;
    assert_eq!(ended(&fleet, &second).await["status"], "completed");

    let told = context(&fleet, &second).await;
    assert_eq!(roles(&told), ["system", "user", "assistant", "tool", "assistant", "user"], "{told:?}");
    let (call, result) = (&told[2]["content"][0], &told[3]["content"][0]);
    assert_eq!(
        (&call["type"], &call["name"], &call["input"]),
        (&json!("tool_call"), &json!("look"), &json!({"q": "x"}))
    );
    assert_eq!((&result["type"], &result["call_id"]), (&json!("tool_result"), &call["id"]));
    assert_eq!(result["content"][0]["text"], "{\"found\":42}");
    assert_eq!(request(&asked(&record), &second, 1)["messages"], json!(told.len()), "and that is what was asked");

    // Whoever takes the conversation over tells the same.
    fleet.kill();
    fleet.up().await;
    let third = say(&fleet, "c09", "and again").await;
    assert_eq!(ended(&fleet, &third).await["status"], "completed");
    let later = context(&fleet, &third).await;
    assert_eq!(later[..5], told[..5], "the same place, the same words");
    let transcript: Vec<String> = said(&fleet, "c09").await.into_iter().map(|(_, text)| text).collect();
    assert_eq!(transcript.len(), 6, "people see what was said: {transcript:?}");
}

/// Agents that keep something in core memory, and are asked again then: `fresh` with a context that is made
/// anew, `steady` with one for the turn. `vector` embeds a text.
async fn open() -> (Harness, std::path::PathBuf) {
    let keep = json!({"content": "Ada likes tea.", "tier": "core"});
    let script = json!({"rules": [
        {"when": {"last": "tool"}, "reply": {"text": "Done: {{result}}"}},
        {"when": {"contains": "remember"}, "reply": {"tool_calls": [{"name": "memory_write", "arguments": keep}]}},
        {"when": {"contains": "embed"}, "reply": {"tool_calls": [{"name": "vector", "arguments": {"text": "tea"}}]}}
    ], "otherwise": {"text": "I heard."}});
    let agent = |id: &str, assembly: &str| {
        let persona = json!({"system_prompt": "You help.", "model_profile_id": "m", "assembly": assembly,
            "tool_ids": ["vector"]});
        item("agent", json!({"id": id, "name": id, "project_ids": ["p1"], "persona_inline": persona}))
    };
    let definitions = [
        item("library", json!({"id": "desk", "name": "Desk"})),
        item("project", json!({"id": "p1", "name": "P1"})),
        item("model_profile", json!({"id": "m", "name": "M", "provider": "scripted", "model_id": "scripted"})),
        item(
            "action_def",
            json!({"id": "embed", "name": "Embed", "library_id": "desk", "kind": "llm", "operation": "embed",
                "config": {"prompt": "{{input.text}}"}, "effect_class": "pure"}),
        ),
        item(
            "task",
            json!({"id": "vector-task", "name": "Vector", "library_id": "desk",
                "steps": [{"ref": "s", "action_def_id": "embed"}]}),
        ),
        item(
            "tool",
            json!({"id": "vector", "name": "vector", "description": "A vector.", "library_id": "desk",
                "input_schema": {"type": "object"}, "target_type": "task", "target_id": "vector-task",
                "effect_class": "pure"}),
        ),
        agent("fresh", "per_call"),
        agent("steady", "per_turn"),
    ];
    open_on(script, &definitions).await
}

#[tokio::test]
async fn k10_a_context_that_is_made_for_each_call_knows_what_happened_since_the_last() {
    let (fleet, record) = open().await;
    for (agent, runs, knows) in [("fresh", ".assemble.1", true), ("steady", ".assemble", false)] {
        let conversation = format!("c10-{agent}");
        converse(&fleet, &conversation, &[agent]).await;
        let id = say(&fleet, &conversation, "remember that").await;
        let turn = ended(&fleet, &id).await;
        assert_eq!((&turn["status"], &turn["moves"]), (&json!("completed"), &json!(2)), "{turn}");
        let run = turn["context_assembly_run_id"].as_str().expect("a run");
        assert!(run.ends_with(runs), "{run}");
        let all = asked(&record);
        let (before, after) = (request(&all, &id, 1), request(&all, &id, 2));
        let knew = |request: &Value| request["system"].as_str().expect("instructions").contains("Ada likes tea.");
        assert_eq!((knew(&before), knew(&after)), (false, knows), "{agent}");
        assert_eq!((&before["messages"], &after["messages"]), (&json!(2), &json!(4)), "its own call is told once");
    }
}

#[tokio::test]
async fn a_tool_may_embed_a_text() {
    let (fleet, _) = open().await;
    converse(&fleet, "c-embed", &["steady"]).await;
    let turn = ended(&fleet, &say(&fleet, "c-embed", "embed it").await).await;
    assert_eq!(turn["status"], "completed", "{turn}");
    let (_, text) = said(&fleet, "c-embed").await.pop().expect("an answer");
    let result = text.strip_prefix("Done: ").and_then(|text| serde_json::from_str::<Value>(text).ok()).expect("JSON");
    let numbers = result["embedding"].as_array().expect("a vector");
    assert!(!numbers.is_empty() && numbers.iter().all(Value::is_number), "{result}");
    assert_eq!(result["dimensions"], json!(numbers.len()));
}
