//! The tools of an MCP server as definitions: an action, a task and a tool for each, under one id. What a
//! server says of its tools is a stranger's word: names are made plain, schemas cut down to what is checked
//! here, and whatever does not say that it is harmless asks a person first.

mod loosen;

use std::collections::{BTreeMap, BTreeSet};

use schemas::definition::DefinitionKind;
use schemas::id::DefinitionId;
use schemas::limits::DESCRIPTION_BYTES_MAX;
use serde_json::{Value, json};

use super::check;
use super::tool::NAME_CHARS_MAX;
use crate::action::hash;

/// Hexadecimal digits that tell two names apart.
const MARK_CHARS: usize = 6;
/// Places in a schema that a note names.
const PLACES_MAX: usize = 8;

/// Whose definitions they become.
#[derive(Debug, Clone)]
pub enum Owner {
    Library(DefinitionId),
    Project(DefinitionId),
}

/// What is wanted of the tools.
#[derive(Debug, Clone)]
pub struct Wish<'w> {
    /// The name of the server in the configuration.
    pub server: &'w str,
    pub owner: Owner,
    /// What the names of all of them begin with.
    pub prefix: &'w str,
    /// These tools alone, by the server's names; empty: all.
    pub only: &'w [String],
    /// Whether those that may do harm ask a person.
    pub ask: bool,
}

/// What becomes of a list of tools.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Offer {
    /// As files of definitions have them; sound, and in the order of the list.
    pub documents: Vec<Value>,
    /// The ids of the tools among them.
    pub tools: Vec<String>,
    /// What was left out or is not checked, in words.
    pub notes: Vec<String>,
}

/// Makes definitions of a list of tools as `tools/list` tells it.
pub fn definitions(listed: &[Value], wish: &Wish<'_>) -> Offer {
    let mut offer = Offer::default();
    let mut seen = BTreeSet::new();
    let named = listed.iter().filter_map(|tool| Some((tool["name"].as_str()?, tool)));
    let wanted: Vec<(&str, &Value)> =
        named.filter(|(name, _)| is_wanted(name, wish) && seen.insert((*name).to_owned())).collect();
    let names = names(wanted.iter().map(|(name, _)| *name), wish.prefix);
    for (theirs, tool) in wanted {
        let ours = &names[theirs];
        match made(theirs, ours, tool, wish, &mut offer.notes) {
            Ok(documents) => {
                offer.documents.extend(documents);
                offer.tools.push(ours.clone());
            }
            Err(why) => offer.notes.push(format!("{theirs} is left out: {why}")),
        }
    }
    for name in wish.only.iter().filter(|name| !seen.contains(*name)) {
        offer.notes.push(format!("{name} is none of its tools"));
    }
    offer
}

fn is_wanted(name: &str, wish: &Wish<'_>) -> bool {
    wish.only.is_empty() || wish.only.iter().any(|wanted| wanted == name)
}

/// A plain name for each. Of several that come out the same, those that had to be changed are marked, so
/// that a name does not depend on the order of the list.
fn names<'n>(theirs: impl Iterator<Item = &'n str>, prefix: &str) -> BTreeMap<&'n str, String> {
    let plain = |name: &str| {
        let text = format!("{prefix}{name}");
        let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        text.chars().map(|c| if is_plain(&c) { c } else { '_' }).take(NAME_CHARS_MAX).collect::<String>()
    };
    let mut names: BTreeMap<&str, String> = theirs.map(|name| (name, plain(name))).collect();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for ours in names.values() {
        *counts.entry(ours.clone()).or_default() += 1;
    }
    for (theirs, ours) in &mut names {
        if counts[&*ours] > 1 && *ours != format!("{prefix}{theirs}") {
            let mark = &hash::hex(&hash::sha256(theirs))[..MARK_CHARS];
            // All of it is ASCII by now.
            ours.truncate(NAME_CHARS_MAX - MARK_CHARS - 1);
            *ours = format!("{ours}_{mark}");
        }
    }
    names
}

/// The documents of one tool.
fn made(
    theirs: &str,
    ours: &str,
    tool: &Value,
    wish: &Wish<'_>,
    notes: &mut Vec<String>,
) -> Result<[Value; 3], String> {
    let (effect_class, may_harm) = effect(tool);
    let (input_schema, mut loosened) = loosen::schema(&tool["inputSchema"]);
    let mut call = json!({
        "id": ours, "name": ours, "description": description(theirs, tool, wish.server), "input_schema": input_schema,
        "target_type": "task", "target_id": ours, "effect_class": effect_class,
    });
    if may_harm && wish.ask {
        call["requires_approval"] = json!({});
    }
    let mut action = json!({
        "id": ours, "name": ours, "kind": "mcp", "operation": "invoke",
        "config": {"server": wish.server, "tool": theirs},
    });
    // Of two sayings the careful one counts: whoever knows that it may be repeated need say so at the tool alone.
    if effect_class != "at_most_once" {
        action["effect_class"] = effect_class.into();
    }
    let task = json!({"id": ours, "name": ours, "steps": [{"ref": "call", "action_def_id": ours}]});
    let all = [(DefinitionKind::ActionDef, action), (DefinitionKind::Task, task), (DefinitionKind::Tool, call)];
    let documents = all.map(|(kind, definition)| sound(kind, definition, &wish.owner));
    let [action, task, call] = documents;
    let documents = [action?, task?, call?];
    if !loosened.is_empty() {
        let more = loosened.len().saturating_sub(PLACES_MAX);
        loosened.truncate(PLACES_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        notes.push(format!("{theirs}: only the server checks {}{more}", loosened.join(", ")));
    }
    Ok(documents)
}

/// With its owner, and checked as if somebody had written it.
fn sound(kind: DefinitionKind, mut definition: Value, owner: &Owner) -> Result<Value, String> {
    match owner {
        Owner::Library(id) => definition["library_id"] = json!(id),
        Owner::Project(id) => definition["project_id"] = json!(id),
    }
    match check(kind, &definition) {
        Ok(_) => Ok(json!({"kind": kind, "definition": definition})),
        Err(problems) => {
            let told = problems.iter().take(3).map(|problem| format!("{} {}", problem.field, problem.message));
            Err(told.collect::<Vec<_>>().join("; "))
        }
    }
}

/// The effect class, and whether it may do harm. A hint counts where it is there and nothing gainsays it.
fn effect(tool: &Value) -> (&'static str, bool) {
    let hint = |name: &str| tool["annotations"][name].as_bool();
    let (reads, repeats) = (hint("readOnlyHint") == Some(true), hint("idempotentHint") == Some(true));
    match hint("destructiveHint") {
        Some(true) if reads => ("at_most_once", true),
        _ if reads => ("pure", false),
        destroys if repeats => ("idempotent", destroys != Some(false)),
        destroys => ("at_most_once", destroys != Some(false)),
    }
}

fn description(name: &str, tool: &Value, server: &str) -> String {
    let texts = [&tool["description"], &tool["title"], &tool["annotations"]["title"]];
    let found = texts.into_iter().filter_map(Value::as_str).map(str::trim).find(|text| !text.is_empty());
    let mut text = found.map_or_else(|| format!("{name} of the MCP server {server}."), |text| text.replace('\0', " "));
    let end = (0..=DESCRIPTION_BYTES_MAX.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    text.truncate(end.unwrap_or_default());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn desk() -> Owner {
        Owner::Library(DefinitionId::parse("desk").unwrap())
    }

    fn offer(listed: &[Value], only: &[String], ask: bool) -> Offer {
        definitions(listed, &Wish { server: "files", owner: desk(), prefix: "files_", only, ask })
    }

    /// The tool among the documents of one.
    fn tool_of(annotations: Value, ask: bool) -> Value {
        let listed = json!({"name": "t", "inputSchema": {"type": "object"}, "annotations": annotations});
        let made = offer(&[listed], &[], ask);
        assert!(made.notes.is_empty(), "{:?}", made.notes);
        made.documents[2]["definition"].clone()
    }

    #[test]
    fn a_tool_becomes_an_action_a_task_and_a_tool() {
        let schema = json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
            "properties": {"path": {"type": "string", "description": "Where"}}, "required": ["path"],
            "additionalProperties": false});
        let listed = json!({"name": "read.text", "description": " Reads a file. ", "inputSchema": schema,
            "annotations": {"readOnlyHint": true}});
        let made = offer(&[listed], &[], true);
        assert_eq!((made.tools.as_slice(), made.notes.len()), (["files_read_text".to_owned()].as_slice(), 0));
        let [action, task, tool] = made.documents.as_slice() else { panic!("{:?}", made.documents) };
        assert_eq!(
            (&action["kind"], &task["kind"], &tool["kind"]),
            (&json!("action_def"), &json!("task"), &json!("tool"))
        );
        let (action, task, tool) = (&action["definition"], &task["definition"], &tool["definition"]);
        assert_eq!(action["config"], json!({"server": "files", "tool": "read.text"}));
        assert_eq!((&action["effect_class"], &action["library_id"]), (&json!("pure"), &json!("desk")));
        assert_eq!((&task["steps"][0]["action_def_id"], &tool["target_id"]), (&action["id"], &task["id"]));
        assert_eq!((&tool["description"], tool.get("requires_approval")), (&json!("Reads a file."), None));
        assert_eq!(tool["input_schema"]["required"], json!(["path"]));
    }

    #[test]
    fn what_is_not_said_to_be_harmless_asks_and_is_not_repeated() {
        for (hints, class, asks) in [
            (json!(null), "at_most_once", true),
            (json!({"readOnlyHint": "yes"}), "at_most_once", true),
            (json!({"readOnlyHint": true}), "pure", false),
            (json!({"readOnlyHint": true, "destructiveHint": false}), "pure", false),
            (json!({"readOnlyHint": true, "destructiveHint": true, "idempotentHint": true}), "at_most_once", true),
            (json!({"idempotentHint": true}), "idempotent", true),
            (json!({"idempotentHint": true, "destructiveHint": false}), "idempotent", false),
            (json!({"destructiveHint": false}), "at_most_once", false),
        ] {
            let tool = tool_of(hints.clone(), true);
            assert_eq!(
                (&tool["effect_class"], tool.get("requires_approval").is_some()),
                (&json!(class), asks),
                "{hints}"
            );
            assert_eq!(tool_of(hints, false).get("requires_approval"), None, "nobody wants to be asked");
        }
    }

    #[test]
    fn what_must_not_be_repeated_is_said_at_the_tool_alone() {
        let made = offer(&[json!({"name": "t", "inputSchema": {"type": "object"}})], &[], true);
        let class = |at: usize| made.documents[at]["definition"].get("effect_class").cloned();
        assert_eq!((class(0), class(2)), (None, Some(json!("at_most_once"))));
    }

    #[test]
    fn names_are_plain_and_do_not_depend_on_the_order() {
        let tool = |name: &str| json!({"name": name, "inputSchema": {}});
        let long = "x".repeat(200);
        let mut listed = [tool("a.b"), tool("a_b"), tool("a/b"), tool("größe"), tool("a_b"), tool(&long[..100])];
        let names = |listed: &[Value]| offer(listed, &[], true).tools.into_iter().collect::<BTreeSet<_>>();
        let first = names(&listed);
        listed.reverse();
        assert_eq!(first, names(&listed));
        assert_eq!(first.len(), 5, "one came twice: {first:?}");
        assert!(first.contains("files_a_b") && first.contains("files_gr__e"), "{first:?}");
        assert!(first.iter().all(|name| name.len() <= NAME_CHARS_MAX), "{first:?}");
        let alone = names(&[tool("a.b")]);
        assert!(alone.contains("files_a_b"), "{alone:?}");
    }

    #[test]
    fn what_cannot_be_defined_is_left_out_and_told() {
        let broken = json!({"name": "broken", "inputSchema": {"properties": {"a": {"type": "text"}}}});
        let nameless = json!({"inputSchema": {}});
        let too_long = json!({"name": "y".repeat(300)});
        let fine = json!({"name": "fine", "description": "\u{0} ".repeat(9) + &"ö".repeat(9_000)});
        let listed = [broken, nameless, too_long, json!(7), fine];
        let made = offer(&listed, &[], true);
        assert_eq!((made.tools.as_slice(), made.documents.len()), (["files_fine".to_owned()].as_slice(), 3));
        assert_eq!(made.notes.len(), 2, "{:?}", made.notes);
        assert!(made.notes[0].contains("input_schema.properties.a.type"), "{:?}", made.notes);
        let some = offer(&listed, &["fine".to_owned(), "none".to_owned()], true);
        assert_eq!((some.tools.len(), some.notes), (1, vec!["none is none of its tools".to_owned()]));
        let memory =
            definitions(&listed, &Wish { server: "m", owner: desk(), prefix: "memory_", only: &[], ask: true });
        assert!(memory.documents.is_empty() && memory.notes.iter().any(|note| note.contains("built-in")), "{memory:?}");
    }
}
