//! The golden samples: what each kind looks like with all its defaults. A change here is a change
//! of every content hash of that kind.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;

/// Reads the least that a kind needs; every default must be as the sample has it.
fn golden<T: Serialize + DeserializeOwned>(least: Value, sample: &str) {
    let sample: Value = serde_json::from_str(sample).expect("a sample is JSON");
    let read: T = serde_json::from_value(least).expect("the least is enough");
    assert_eq!(serde_json::to_value(&read).expect("it serialises"), sample, "defaults");
    let again: T = serde_json::from_value(sample.clone()).expect("a sample is a record");
    assert_eq!(serde_json::to_value(&again).expect("it serialises"), sample, "what is written is read");
}

macro_rules! sample {
    ($name:literal) => {
        include_str!(concat!("../../samples/definitions/", $name, ".json"))
    };
}

#[test]
fn containers() {
    golden::<Library>(json!({"id": "core", "name": "Core"}), sample!("library"));
    golden::<Project>(json!({"id": "p1", "name": "Site"}), sample!("project"));
}

#[test]
fn what_calls_a_model() {
    golden::<ModelProfile>(
        json!({"id": "fast", "name": "Fast", "provider": "scripted", "model_id": "jokes"}),
        sample!("model_profile"),
    );
    golden::<PromptSpec>(
        json!({"id": "title", "name": "Title", "library_id": "core", "template": "A title for {{text}}"}),
        sample!("prompt_spec"),
    );
}

#[test]
fn who_acts() {
    let persona = json!({"id": "writer", "name": "Writer", "library_id": "core", "system_prompt": "You write.",
                         "model_profile_id": "fast", "compaction": {}});
    golden::<Persona>(persona, sample!("persona"));
    let agent = json!({"id": "ana", "name": "Ana", "project_ids": ["p1"], "persona_ref": {"persona_id": "writer"}});
    golden::<Agent>(agent, sample!("agent"));
}

#[test]
fn what_is_done() {
    let tool = json!({"id": "search", "name": "search", "description": "Search the notes.", "library_id": "core",
                      "input_schema": {"type": "object"}, "target_type": "task", "target_id": "find",
                      "requires_approval": {}});
    golden::<Tool>(tool, sample!("tool"));
    let task = json!({"id": "find", "name": "Find", "library_id": "core", "retry": {"max_attempts": 2},
                      "steps": [{"ref": "look", "action_def_id": "lookup", "condition": {"if": "input.q"}}]});
    golden::<Task>(task, sample!("task"));
    let action = json!({"id": "lookup", "name": "Look up", "library_id": "core", "kind": "mock",
                        "operation": "return"});
    golden::<ActionDef>(action, sample!("action_def"));
}

#[test]
fn a_default_is_somebodys_word_where_that_is_noted() {
    let tool = |more: Value| {
        let mut tool = json!({"id": "search", "name": "search", "description": "Search.", "input_schema": {},
                              "target_type": "agent", "target_id": "find"});
        tool.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        serde_json::from_value::<Tool>(tool).expect("a tool")
    };
    let said = |more: Value| (tool(more.clone()).said_class(), tool(more).said_timeout_ms());
    let defaults = json!({"effect_class": "at_most_once", "retry": {"timeout_ms": 60_000}});
    assert_eq!((said(json!({})), said(defaults.clone())), ((None, None), (None, None)), "as it was before");
    let mut noted = defaults;
    noted["chosen"] = json!({"effect_class": true, "timeout_ms": true});
    assert_eq!(said(noted.clone()), (Some(EffectClass::AtMostOnce), Some(60_000)));
    assert_eq!(serde_json::to_value(tool(noted.clone())).expect("it serialises")["chosen"], noted["chosen"]);
    let others = json!({"effect_class": "pure", "retry": {"timeout_ms": 5}});
    assert_eq!(said(others), (Some(EffectClass::Pure), Some(5)));
}

#[test]
fn names_are_read_back() {
    for kind in DefinitionKind::ALL {
        assert_eq!(DefinitionKind::parse(kind.as_str()), Some(kind));
        assert_eq!(DefinitionKind::meant(kind.plural()), Some(kind));
        assert_eq!(serde_json::to_value(kind).expect("a name"), kind.as_str());
    }
    assert_eq!(DefinitionKind::meant("Action-Defs"), Some(DefinitionKind::ActionDef));
    assert_eq!(DefinitionKind::meant("workflow"), None);
    for kind in ActionKind::ALL {
        assert_eq!(ActionKind::parse(kind.as_str()), Some(kind));
        assert_eq!(serde_json::to_value(kind).expect("a name"), kind.as_str());
        assert!(!kind.operations().is_empty());
    }
}
