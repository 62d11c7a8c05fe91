//! Documents, order, changes, and references that lead nowhere.

use schemas::api::{DefinitionChange, DefinitionWritten, FieldChange};
use schemas::definition::DefinitionKind;
use schemas::id::DefinitionId;
use schemas::json::Json;
use serde_json::{Value, json};

use super::super::plan::{
    Item, Known, KnownDefinitions, Renamed, change, document, hidden, namesakes, order, placed, tell, unmet,
};
use super::super::{Checked, check, references};
use super::{checked, least, with};

#[test]
fn documents_are_read_in_both_forms() {
    let flat = document(json!({"kind": "tools", "id": "a", "name": "b"})).expect("flat");
    assert_eq!(flat, Item { kind: DefinitionKind::Tool, definition: json!({"id": "a", "name": "b"}) });
    let nested = document(json!({"kind": "action_def", "definition": {"id": "a", "kind": "mock"}})).expect("nested");
    assert_eq!(nested.definition["kind"], "mock");
    assert_eq!(nested.label(), "action def a");
    assert_eq!(nested.body(), json!({"kind": "action_def", "definition": {"id": "a", "kind": "mock"}}));
    for (value, told) in [
        (json!([]), "must be an object"),
        (json!({"id": "a"}), "kind is missing"),
        (json!({"kind": "persone"}), "did you mean \"persona\"?"),
        (json!({"kind": 1}), "must be a string"),
        (json!({"kind": "action_def", "id": "a"}), "`definition:`"),
        (json!({"kind": "tool", "id": "a", "definition": {}}), "`id` stands beside"),
    ] {
        let found = document(value.clone()).expect_err("broken");
        assert!(found.contains(told), "{value}: {found}");
    }
}

fn item(kind: DefinitionKind) -> Item {
    Item { kind, definition: least(kind) }
}

#[test]
fn what_is_needed_comes_first() {
    let mut items: Vec<Item> = DefinitionKind::ALL.into_iter().rev().map(item).collect();
    // A tool that calls the agent whose persona has it: a circle.
    let mut calls = least(DefinitionKind::Tool);
    calls["target_type"] = json!("agent");
    calls["target_id"] = json!("ana");
    items[2] = Item { kind: DefinitionKind::Tool, definition: calls };
    let ordered: Vec<&Item> = order(&items).into_iter().map(|index| &items[index]).collect();
    assert_eq!(ordered.len(), items.len(), "nothing is lost");
    let at = |kind| ordered.iter().position(|item| item.kind == kind).expect("it is there");
    for (first, then) in [
        (DefinitionKind::Library, DefinitionKind::Tool),
        (DefinitionKind::ModelProfile, DefinitionKind::Persona),
        (DefinitionKind::ActionDef, DefinitionKind::Task),
        (DefinitionKind::Persona, DefinitionKind::Agent),
        (DefinitionKind::Project, DefinitionKind::Agent),
    ] {
        assert!(at(first) < at(then), "{first:?} before {then:?}");
    }
    assert!(at(DefinitionKind::Agent) < at(DefinitionKind::Tool), "the circle is opened where it is met first");
}

#[test]
fn order_is_stable_and_copes_with_anything() {
    let broken = Item { kind: DefinitionKind::Agent, definition: json!(7) };
    let twice = [item(DefinitionKind::Tool), broken, item(DefinitionKind::Tool)];
    assert_eq!(order(&twice), [0, 2, 1]);
    let selfish = json!({"id": "find", "steps": [{"action_def_id": "find"}]});
    let selfish = Item { kind: DefinitionKind::Task, definition: selfish };
    assert_eq!(order(&[selfish]), [0]);
}

#[test]
fn changes_count_from_the_newest() {
    let (one, two) = ([1; 32], [2; 32]);
    assert_eq!(change(None, &one), (DefinitionChange::Created, 1));
    assert_eq!(change(Some((3, &one)), &one), (DefinitionChange::Unchanged, 3));
    assert_eq!(change(Some((3, &one)), &two), (DefinitionChange::Updated, 4));
}

fn told(items: &[Checked], known: &KnownDefinitions) -> Vec<String> {
    unmet(items, known).into_iter().map(|(index, one)| format!("{index} {}: {}", one.field, one.message)).collect()
}

fn stored(kinds: &[DefinitionKind]) -> KnownDefinitions {
    let entry = |kind: &DefinitionKind| {
        let new = checked(*kind).new;
        let known = Known { name: new.name, version: 2, content_hash: new.content_hash, library_id: new.library_id };
        ((*kind, new.id), known)
    };
    kinds.iter().map(entry).collect()
}

#[test]
fn references_lead_to_the_same_write_or_the_store() {
    let persona = checked(DefinitionKind::Persona);
    assert_eq!(
        told(std::slice::from_ref(&persona), &stored(&[DefinitionKind::Library])),
        [
            "0 model_profile_id: there is no model profile fast; write it first, or in the same list",
            "0 tool_ids[0]: there is no tool search; write it first, or in the same list"
        ]
    );
    let list = [persona, checked(DefinitionKind::Tool), checked(DefinitionKind::ModelProfile)];
    let known = stored(&[DefinitionKind::Library, DefinitionKind::Task]);
    assert_eq!(told(&list, &known), [""; 0]);
}

#[test]
fn tools_of_one_name_are_told_where_they_are_listed() {
    let id = |text: &str| DefinitionId::parse(text).expect("an id");
    let names = [("t1", "search"), ("t2", "find"), ("t3", "search"), ("t4", "search")];
    let names = names.into_iter().map(|(tool, name)| (id(tool), name.to_owned())).collect();
    let told = |tools: Value| {
        let listed = references(DefinitionKind::Persona, &with(DefinitionKind::Persona, "tool_ids", tools));
        let found = namesakes([(7, listed.as_slice())], &names);
        found.into_iter().map(|(index, one)| format!("{index} {}: {}", one.field, one.message)).collect::<Vec<_>>()
    };
    assert_eq!(told(json!(["t1", "t2", "unknown"])), [""; 0]);
    let both = |other: &str| {
        format!(
            "the tools t1 and {other} are both named \"search\", by which a model calls them; rename one of them, or \
             take it out"
        )
    };
    let told = told(json!(["t1", "t3", "t2", "t4"]));
    assert_eq!(told, [format!("7 tool_ids[1]: {}", both("t3")), format!("7 tool_ids[3]: {}", both("t4"))]);
}

#[test]
fn a_new_name_is_told_by_who_has_another_tool_of_it() {
    let id = |text: &str| DefinitionId::parse(text).expect("an id");
    let ids = |texts: &[&str]| texts.iter().map(|text| id(text)).collect::<Vec<_>>();
    let others = ids(&["t1", "t9"]).into_iter().collect();
    let renamed = [Renamed { index: 4, id: id("t2"), name: "find".to_owned(), others }];
    let told = |tools: &[&str]| {
        let found = hidden(&renamed, "persona writer", &ids(tools));
        found.into_iter().map(|(index, one)| format!("{index} {}: {}", one.field, one.message)).collect::<Vec<_>>()
    };
    for unharmed in [&["t1", "t9"][..], &["t2", "t3"], &[]] {
        assert_eq!(told(unharmed), [""; 0], "{unharmed:?}");
    }
    assert_eq!(
        told(&["t3", "t2", "t1"]),
        ["4 name: persona writer has the tools t1 and t2, which would both be named \"find\", by which a model calls \
          them; choose another name, or take one of them out there first, or in the same list"]
    );
}

fn agent(persona_ref: Value) -> Checked {
    check(DefinitionKind::Agent, &with(DefinitionKind::Agent, "persona_ref", persona_ref)).expect("valid")
}

#[test]
fn versions_and_libraries_must_be_there_too() {
    let known = stored(&[DefinitionKind::Project, DefinitionKind::Persona, DefinitionKind::Library]);
    assert_eq!(told(&[agent(json!({"persona_id": "writer", "version": 2, "library_id": "core"}))], &known), [""; 0]);
    assert_eq!(
        told(&[agent(json!({"persona_id": "writer", "version": 3}))], &known),
        ["0 persona_ref.persona_id: there is no version 3 of persona writer; the newest is 2"]
    );
    assert_eq!(
        told(&[agent(json!({"persona_id": "writer", "library_id": "other"}))], &known),
        ["0 persona_ref.persona_id: persona writer is not of the library other"]
    );
    // The version that the same write makes counts.
    let newer = with(DefinitionKind::Persona, "instructions", json!("Be brief."));
    let newer = check(DefinitionKind::Persona, &newer).expect("valid");
    let known = stored(&[
        DefinitionKind::Project,
        DefinitionKind::Persona,
        DefinitionKind::Library,
        DefinitionKind::ModelProfile,
        DefinitionKind::Tool,
    ]);
    assert_eq!(told(&[agent(json!({"persona_id": "writer", "version": 3})), newer], &known), [""; 0]);
    let id = DefinitionId::parse("writer").expect("an id");
    assert!(known.contains_key(&(DefinitionKind::Persona, id)));
}

#[test]
fn a_write_is_told_in_lines() {
    let fields = vec![
        FieldChange { field: "a.b".into(), from: Some(Json::of(&1)), to: Some(Json::of(&"x")) },
        FieldChange { field: "c".into(), from: None, to: Some(Json::of(&"ü".repeat(500))) },
    ];
    let written = DefinitionWritten {
        kind: DefinitionKind::ActionDef,
        id: DefinitionId::parse("look").expect("an id"),
        version: 2,
        content_hash: String::new(),
        change: DefinitionChange::Updated,
        fields,
    };
    let lines = tell(&written);
    assert_eq!(lines[..2], ["~ action def look: updated, version 2", "    a.b: 1 -> \"x\""]);
    assert!(lines[2].starts_with("    c: (none) -> \"ü") && lines[2].ends_with('…') && lines[2].len() < 300);
}

#[test]
fn problems_are_told_by_where_their_definition_came_from() {
    let places = ["a.yaml: tool x".to_owned(), "b.yaml: agent y".to_owned()];
    for (field, told) in [
        ("[1].definition.project_ids[0]", "b.yaml: agent y: project_ids[0]"),
        ("[0].definition", "a.yaml: tool x"),
        ("[0].kind", "a.yaml: tool x: kind"),
        ("[2].definition.id", "[2].definition.id"),
        ("body", "body"),
    ] {
        assert_eq!(placed(field, &places), told);
    }
}
