//! Each kind in its least form and in every broken one; lists as plans.

mod broken;
mod plans;

use proptest::prelude::*;
use schemas::definition::DefinitionKind;
use serde_json::{Value, json};

use super::{Checked, check};

/// The least that each kind needs.
pub(super) fn least(kind: DefinitionKind) -> Value {
    match kind {
        DefinitionKind::Library => json!({"id": "core", "name": "Core"}),
        DefinitionKind::Project => json!({"id": "p1", "name": "Site"}),
        DefinitionKind::ModelProfile => {
            json!({"id": "fast", "name": "Fast", "provider": "scripted", "model_id": "m"})
        }
        DefinitionKind::PromptSpec => {
            json!({"id": "title", "name": "Title", "library_id": "core", "template": "{{text}}"})
        }
        DefinitionKind::ActionDef => {
            json!({"id": "lookup", "name": "Look up", "library_id": "core", "kind": "mock", "operation": "return"})
        }
        DefinitionKind::Task => json!({"id": "find", "name": "Find", "library_id": "core",
            "steps": [{"ref": "a", "action_def_id": "lookup"}]}),
        DefinitionKind::Tool => json!({"id": "search", "name": "search", "description": "Search.",
            "library_id": "core", "input_schema": {"type": "object"}, "target_type": "task", "target_id": "find"}),
        DefinitionKind::Persona => json!({"id": "writer", "name": "Writer", "library_id": "core",
            "system_prompt": "You write.", "model_profile_id": "fast", "tool_ids": ["search"]}),
        DefinitionKind::Agent => json!({"id": "ana", "name": "Ana", "project_ids": ["p1"],
            "persona_ref": {"persona_id": "writer"}}),
    }
}

pub(super) fn checked(kind: DefinitionKind) -> Checked {
    check(kind, &least(kind)).expect("the least is enough")
}

/// The least with a field set; a path as in `retry.max_attempts`.
pub(super) fn with(kind: DefinitionKind, path: &str, value: Value) -> Value {
    let mut whole = least(kind);
    let mut at = &mut whole;
    for part in path.split('.') {
        at = match part.parse::<usize>() {
            Ok(index) if at.is_array() => &mut at[index],
            _ => &mut at[part],
        };
    }
    *at = value;
    whole
}

#[test]
fn the_least_is_enough_and_defaults_do_not_count() {
    for kind in DefinitionKind::ALL {
        let short = checked(kind);
        let long = check(kind, &short.value).expect("what is stored can be written again");
        assert_eq!(short.new.content_hash, long.new.content_hash, "{kind:?}");
        assert_eq!(short.new.content.as_str(), long.new.content.as_str());
        let mut nulls = least(kind);
        nulls["description"] = nulls.get("description").cloned().unwrap_or(Value::Null);
        assert_eq!(check(kind, &nulls).expect("null is absent").new.content_hash, short.new.content_hash);
    }
}

#[test]
fn what_differs_has_another_hash() {
    let one = checked(DefinitionKind::Persona).new;
    let other = with(DefinitionKind::Persona, "recent_turns_limit", json!(21));
    assert_ne!(check(DefinitionKind::Persona, &other).expect("valid").new.content_hash, one.content_hash);
    let whole = with(DefinitionKind::Persona, "context_budget", json!(1));
    let point = with(DefinitionKind::Persona, "context_budget", json!(1.0));
    let hash = |value: &Value| check(DefinitionKind::Persona, value).expect("valid").new.content_hash;
    assert_eq!(hash(&whole), hash(&point), "a number is what it is worth");
}

#[test]
fn a_request_that_only_reads_is_pure_where_nobody_says_otherwise() {
    let class = |more: Value| {
        let mut action = json!({"id": "page", "name": "Page", "library_id": "core", "kind": "http",
                                "operation": "request", "config": {"url": "https://example.org"}});
        for (name, value) in more.as_object().expect("fields") {
            action[name] = value.clone();
        }
        let one = check(DefinitionKind::ActionDef, &action).expect("valid");
        let again = check(DefinitionKind::ActionDef, &one.value).expect("what is stored can be written again");
        assert_eq!(one.new.content_hash, again.new.content_hash);
        one.new.content.to_value()["effect_class"].as_str().expect("it has one").to_owned()
    };
    let config = |more: Value| {
        let mut config = json!({"url": "https://example.org"});
        config.as_object_mut().expect("fields").extend(more.as_object().expect("fields").clone());
        json!({ "config": config })
    };
    assert_eq!(class(json!({})), "pure");
    assert_eq!(class(config(json!({"method": "GET", "body": "q"}))), "pure");
    assert_eq!(class(config(json!({"body": null}))), "pure");
    for said in ["at_most_once", "idempotent"] {
        assert_eq!(class(json!({ "effect_class": said })), said, "what is said counts");
    }
    for more in [json!({"method": "POST"}), json!({"method": "DELETE"}), json!({"body": {"a": 1}})] {
        assert_eq!(class(config(more.clone())), "at_most_once", "{more}");
    }
}

#[test]
fn owners_and_projects_are_lifted() {
    let tool = checked(DefinitionKind::Tool).new;
    assert_eq!((tool.id.as_str(), tool.name.as_str()), ("search", "search"));
    assert_eq!(tool.library_id.as_ref().map(|id| id.as_str()), Some("core"));
    assert!(tool.project_ids.is_empty());
    let agent = checked(DefinitionKind::Agent).new;
    assert_eq!(agent.project_ids.iter().map(|id| id.as_str()).collect::<Vec<_>>(), ["p1"]);
    let mut owned = least(DefinitionKind::Tool);
    owned["library_id"] = Value::Null;
    owned["project_id"] = json!("p1");
    let owned = check(DefinitionKind::Tool, &owned).expect("a project may own it").new;
    assert_eq!((owned.library_id, owned.project_ids.len()), (None, 1));
}

#[test]
fn references_are_told_with_their_places() {
    let told = |kind, value: &Value| {
        let found = super::references(kind, value);
        found.into_iter().map(|one| format!("{} {} {}", one.field, one.kind.as_str(), one.id)).collect::<Vec<_>>()
    };
    assert_eq!(
        told(DefinitionKind::Persona, &least(DefinitionKind::Persona)),
        ["library_id library core", "model_profile_id model_profile fast", "tool_ids[0] tool search"]
    );
    assert_eq!(
        told(DefinitionKind::Task, &least(DefinitionKind::Task)),
        ["library_id library core", "steps[0].action_def_id action_def lookup"]
    );
    let inline = json!({"id": "a", "name": "A", "project_ids": ["p1"],
                        "persona_inline": {"system_prompt": "x", "model_profile_id": "fast", "tool_ids": ["search"],
                                           "compaction": {"model_profile_id": "cheap"}}});
    assert_eq!(
        told(DefinitionKind::Agent, &inline),
        [
            "project_ids[0] project p1",
            "persona_inline.model_profile_id model_profile fast",
            "persona_inline.tool_ids[0] tool search",
            "persona_inline.compaction.model_profile_id model_profile cheap"
        ]
    );
    let generate = json!({"id": "g", "name": "G", "library_id": "core", "kind": "llm", "operation": "generate",
                          "config": {"model_profile_id": "fast", "prompt_spec_id": "title", "prompt_spec_version": 3}});
    let found = super::references(DefinitionKind::ActionDef, &generate);
    assert_eq!(found.last().map(|one| (one.id.as_str(), one.version)), Some(("title", Some(3))));
    // Broken ones still tell what they can.
    assert_eq!(told(DefinitionKind::Tool, &json!({"target_type": "agent", "target_id": "bo"})), ["target_id agent bo"]);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z\\-{}#/ ]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map("[a-z_]{1,8}", inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Whatever stands in a field: it is taken or refused with its path, and what is taken is stable.
    #[test]
    fn any_value_in_any_field_is_judged(kind in 0..9_usize, field in 0..14_usize, value in any_json()) {
        let kind = DefinitionKind::ALL[kind];
        let names = ["id", "name", "description", "library_id", "input_schema", "steps", "config", "retry", "execution",
                     "constraints", "persona_inline", "parameters", "template", "tool_ids"];
        let mut whole = least(kind);
        whole[names[field]] = value;
        match check(kind, &whole) {
            Ok(checked) => {
                let again = check(kind, &checked.value).expect("what was taken is taken again");
                prop_assert_eq!(again.new, checked.new);
            }
            Err(problems) => prop_assert!(!problems.is_empty() && problems.iter().all(|one| !one.message.is_empty())),
        }
    }
}
