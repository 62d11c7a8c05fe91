//! Who takes part in conversations: two agents with their tools, and what their models say.

use serde_json::{Value, json};

use crate::plan::Word;

/// Who is talked to.
pub const TALKER: &str = "chaos-talker";
/// Tools in the background wait here for the harness.
pub const POOL: &str = "chaos";
/// Rounds of tools that a turn may have.
pub const ROUNDS_MAX: u64 = 3;
/// Begins the instructions of all agents, and of nobody else.
pub const SYSTEM: &str = "You take part in a test of faults.";
/// Begins the names of the files that hold what models were asked.
pub const RECORD: &str = "asked-";
/// Message of the failures that the script plans.
pub const PLANNED: &str = "as planned";

/// Words that name a tool.
const TOOLS: [Word; 5] = [Word::Often, Word::Once, Word::Errand, Word::Ask, Word::Confirm];
const DEVELOPER: &str = "chaos-developer";
const DEVELOPS: &str = "You develop.";
const LIBRARY: &str = "chaos";

/// A list for `POST /api/definitions`.
pub fn definitions(step_port: u16) -> Value {
    let item = |kind: &str, definition: Value| json!({ "kind": kind, "definition": definition });
    let agent = |id: &str, persona: Value| {
        item("agent", json!({ "id": id, "name": id, "project_ids": [LIBRARY], "persona_inline": persona }))
    };
    let model = "chaos-model";
    let mut all = vec![
        item("library", json!({ "id": LIBRARY, "name": "Chaos" })),
        item("project", json!({ "id": LIBRARY, "name": "Chaos" })),
        item(
            "model_profile",
            json!({ "id": model, "name": "Scripted", "provider": "scripted", "model_id": "scripted" }),
        ),
    ];
    all.extend(task_tool(Word::Often, http(step_port, Word::Often), &json!({ "effect_class": "idempotent" })));
    all.extend(task_tool(Word::Once, http(step_port, Word::Once), &json!({ "effect_class": "at_most_once" })));
    let errand = json!({ "kind": "external", "operation": "run", "config": { "pool": POOL } });
    all.extend(task_tool(Word::Errand, errand, &json!({ "effect_class": "idempotent", "async": true })));
    let gated = json!({ "effect_class": "idempotent", "requires_approval": { "expires_s": 86_400 } });
    all.extend(task_tool(Word::Confirm, http(step_port, Word::Confirm), &gated));
    let ask = json!({ "target_type": "agent", "target_id": DEVELOPER, "effect_class": "pure" });
    all.push(item("tool", tool(Word::Ask, &ask)));
    all.push(agent(DEVELOPER, json!({ "system_prompt": format!("{SYSTEM} {DEVELOPS}"), "model_profile_id": model })));
    let tools = TOOLS.map(Word::as_str);
    let talker = json!({ "id": TALKER, "name": TALKER, "library_id": LIBRARY, "model_profile_id": model,
                         "system_prompt": format!("{SYSTEM} You talk."), "tool_ids": tools,
                         "constraints": { "max_moves_per_turn": ROUNDS_MAX } });
    all.push(item("persona", talker));
    let by_reference = json!({ "persona_id": TALKER, "library_id": LIBRARY });
    all.push(item(
        "agent",
        json!({ "id": TALKER, "name": TALKER, "project_ids": [LIBRARY], "persona_ref": by_reference }),
    ));
    Value::Array(all)
}

/// A call of the harness's own server, which notes its key.
fn http(port: u16, word: Word) -> Value {
    let url = format!("http://127.0.0.1:{port}/tool/{}", word.as_str());
    json!({ "kind": "http", "operation": "request",
            "config": { "url": url, "method": "POST", "body": { "operation": "{{operation_id}}" } } })
}

fn tool(word: Word, more: &Value) -> Value {
    let name = word.as_str();
    let tool = json!({ "id": name, "name": name, "description": name, "library_id": LIBRARY,
                       "input_schema": { "type": "object" } });
    with(tool, more)
}

/// A tool, its task and its action, all of the same class.
fn task_tool(word: Word, action: Value, more: &Value) -> Vec<Value> {
    let name = word.as_str();
    let (task_id, action_id) = (format!("{name}-task"), format!("{name}-action"));
    let own = json!({ "id": action_id, "name": name, "library_id": LIBRARY, "effect_class": more["effect_class"] });
    let steps = json!([{ "ref": "only", "action_def_id": action_id }]);
    let target = json!({ "target_type": "task", "target_id": task_id, "retry": retry(more) });
    vec![
        json!({ "kind": "action_def", "definition": with(action, &own) }),
        json!({ "kind": "task", "definition": { "id": task_id, "name": name, "library_id": LIBRARY, "steps": steps } }),
        json!({ "kind": "tool", "definition": with(tool(word, more), &target) }),
    ]
}

/// The server answers a second attempt at what may be repeated.
fn retry(more: &Value) -> Value {
    let attempts = if more["effect_class"] == "idempotent" { 4 } else { 1 };
    json!({ "max_attempts": attempts, "backoff_ms": 200, "timeout_ms": 4_000 })
}

/// The fields of both.
fn with(mut all: Value, more: &Value) -> Value {
    if let (Some(all), Some(more)) = (all.as_object_mut(), more.as_object()) {
        all.extend(more.clone());
    }
    all
}

/// What the models of both agents say: rules of a script, to stand before those for monikers.
pub fn rules() -> Vec<Value> {
    let rule = |mut when: Value, mut reply: Value| {
        when["system"] = SYSTEM.into();
        if reply.get("fail").is_none() {
            reply["usage"] = json!({ "input_tokens": 10, "output_tokens": 3 });
        }
        json!({ "when": when, "reply": reply })
    };
    let asks = |word: Word| json!({ "contains": format!("please {}", word.as_str()) });
    let says = |text: &str| json!({ "text": text, "delay_ms": 150, "delta_ms": 40 });
    let calls =
        |word: Word| json!({ "tool_calls": [{ "name": word.as_str(), "arguments": { "q": "x" } }], "delay_ms": 100 });
    let fails = |class: &str| json!({ "fail": { "class": class, "message": PLANNED } });
    let develops = with(says("The work is done."), &json!({ "usage": { "input_tokens": 20, "output_tokens": 5 } }));
    let mut rules = vec![
        json!({ "when": { "system": [SYSTEM, DEVELOPS] }, "reply": develops }),
        rule(json!({ "contains": "has finished" }), says("It is finished.")),
        rule(json!({ "contains": "has failed" }), says("It has failed.")),
        rule(with(asks(Word::Limit), &json!({ "tools": true })), calls(Word::Often)),
        rule(asks(Word::Limit), says("That is all that I may do.")),
        rule(json!({ "last": "tool" }), says("The tool says {{result}}.")),
    ];
    rules.extend(TOOLS.map(|word| rule(asks(word), calls(word))));
    rules.push(rule(asks(Word::Doomed), fails("auth")));
    for call in [1, 12, 30] {
        rules.push(rule(with(asks(Word::Flaky), &json!({ "call": call })), fails("overloaded")));
    }
    rules.push(rule(json!({}), says("I heard {{prompt}}.")));
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_for_conversations_alone_and_every_tool_has_its_call() {
        let rules = rules();
        for rule in &rules {
            assert!(rule["when"]["system"].to_string().contains(SYSTEM), "{rule}");
        }
        let definitions = definitions(7).to_string();
        for word in TOOLS {
            let called = rules.iter().any(|rule| rule["reply"]["tool_calls"][0]["name"] == word.as_str());
            assert!(called, "{word:?}");
            assert!(definitions.contains(&format!("\"name\":\"{}\"", word.as_str())), "{word:?}");
        }
        let mut replies = rules.iter().filter(|rule| rule["reply"].get("fail").is_none());
        assert!(replies.all(|rule| rule["reply"]["usage"].is_object()));
    }
}
