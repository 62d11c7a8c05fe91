//! What a write of definitions will do: documents of files, their order, what each becomes, and
//! whether everything they refer to is there.

use std::collections::{BTreeMap, BTreeSet};

use schemas::api::{DefinitionChange, DefinitionWritten};
use schemas::definition::DefinitionKind;
use schemas::id::DefinitionId;
use schemas::json::Json;
use schemas::problem::FieldProblem;
use serde_json::{Map, Value, json};

use super::{Checked, Reference, references, words};
use crate::action::fields;

/// Of a value in a line for people.
const BRIEF_CHARS: usize = 120;

/// One definition of a list to write.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    pub kind: DefinitionKind,
    pub definition: Value,
}

impl Item {
    /// As `POST /api/definitions` takes it.
    pub fn body(&self) -> Value {
        json!({ "kind": self.kind, "definition": self.definition })
    }

    /// For people: the kind and as much of an id as there is.
    pub fn label(&self) -> String {
        format!("{} {}", words(self.kind), self.definition["id"].as_str().unwrap_or("without id"))
    }
}

/// What the store has of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    pub name: String,
    pub version: u64,
    pub content_hash: [u8; 32],
    pub library_id: Option<DefinitionId>,
}

/// Definitions of the store by kind and id.
pub type KnownDefinitions = BTreeMap<(DefinitionKind, DefinitionId), Known>;

/// Reads one document of a file: `kind` beside the fields of the definition, or beside
/// `definition`, which holds them.
///
/// # Errors
/// What is wrong with the document, for people.
pub fn document(value: Value) -> Result<Item, String> {
    let Value::Object(mut map) = value else {
        return Err(format!(
            "must be an object with `kind` and the fields of that kind, not {}",
            fields::kind_of(&value)
        ));
    };
    let kind = kind_of(&map)?;
    map.remove("kind");
    match map.remove("definition") {
        Some(definition) if map.is_empty() => Ok(Item { kind, definition }),
        Some(_) => {
            let name = map.keys().next().map_or("", String::as_str);
            Err(format!("`{name}` stands beside `definition`; put it in there"))
        }
        None if kind == DefinitionKind::ActionDef => {
            Err("an action def has a `kind` of its own: write its fields under `definition:`".to_owned())
        }
        None => Ok(Item { kind, definition: Value::Object(map) }),
    }
}

fn kind_of(map: &Map<String, Value>) -> Result<DefinitionKind, String> {
    let names = DefinitionKind::ALL.map(DefinitionKind::as_str);
    match map.get("kind") {
        Some(Value::String(text)) => {
            DefinitionKind::meant(text).ok_or_else(|| format!("kind {}", fields::not_one_of(text, &names)))
        }
        Some(other) => Err(format!("kind must be a string, not {}", fields::kind_of(other))),
        None => Err(format!("kind is missing; write one of {}", names.join(", "))),
    }
}

/// The places of a list in an order that puts what is referred to before what refers to it. Circles,
/// as of two agents that may call each other, are opened somewhere; the rest is by kind, then as given.
pub fn order(items: &[Item]) -> Vec<usize> {
    let mut by_kind: Vec<usize> = (0..items.len()).collect();
    by_kind.sort_by_key(|index| items[*index].kind);
    let mut places: BTreeMap<(DefinitionKind, &str), usize> = BTreeMap::new();
    for (index, item) in items.iter().enumerate() {
        if let Some(id) = item.definition["id"].as_str() {
            places.entry((item.kind, id)).or_insert(index);
        }
    }
    let before: Vec<Vec<usize>> = items
        .iter()
        .map(|item| {
            let found = references(item.kind, &item.definition);
            found.iter().filter_map(|one| places.get(&(one.kind, one.id.as_str())).copied()).collect()
        })
        .collect();
    let mut done: Vec<usize> = Vec::new();
    let mut seen = vec![false; items.len()];
    for start in by_kind {
        // Depth first without recursion: a place is left when all that it needs is done.
        let mut path = vec![(start, 0)];
        while let Some((index, next)) = path.pop() {
            if next == 0 && std::mem::replace(&mut seen[index], true) {
                continue;
            }
            match before[index].get(next) {
                Some(needed) => {
                    path.push((index, next + 1));
                    if !seen[*needed] {
                        path.push((*needed, 0));
                    }
                }
                None => done.push(index),
            }
        }
    }
    done
}

/// What a write does with one definition, in lines for people.
pub fn tell(written: &DefinitionWritten) -> Vec<String> {
    let DefinitionWritten { kind, id, version, change, fields, .. } = written;
    let (what, sign) = (words(*kind), sign(*change));
    let mut lines = vec![format!("{sign} {what} {id}: {}, version {version}", change.as_str())];
    for field in fields {
        let side =
            |value: &Option<Json>| value.as_ref().map_or_else(|| "(none)".to_owned(), |value| brief(value.as_str()));
        lines.push(format!("    {}: {} -> {}", field.field, side(&field.from), side(&field.to)));
    }
    lines
}

fn sign(change: DefinitionChange) -> char {
    match change {
        DefinitionChange::Created => '+',
        DefinitionChange::Updated => '~',
        DefinitionChange::Unchanged => '=',
    }
}

/// Enough of a value to know it by.
fn brief(text: &str) -> String {
    match text.char_indices().nth(BRIEF_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The field of a problem with a list, told by where its definition came from instead of by number:
/// `[2].definition.name` of the third place.
pub fn placed(field: &str, places: &[String]) -> String {
    let parsed = field.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let Some((place, rest)) = parsed.and_then(|(index, rest)| Some((places.get(index.parse::<usize>().ok()?)?, rest)))
    else {
        return field.to_owned();
    };
    let rest = rest.strip_prefix(".definition").unwrap_or(rest);
    let rest = rest.strip_prefix('.').unwrap_or(rest);
    if rest.is_empty() { place.clone() } else { format!("{place}: {rest}") }
}

/// What a write makes of a definition, and the version that then has the content. Only the newest
/// content counts: going back to an older one is a change, and gets a version of its own.
pub fn change(known: Option<(u64, &[u8; 32])>, content_hash: &[u8; 32]) -> (DefinitionChange, u64) {
    match known {
        None => (DefinitionChange::Created, 1),
        Some((version, hash)) if hash == content_hash => (DefinitionChange::Unchanged, version),
        Some((version, _)) => (DefinitionChange::Updated, version + 1),
    }
}

/// The references of these definitions that lead nowhere, by the place of who refers.
pub fn unmet(items: &[Checked], known: &KnownDefinitions) -> Vec<(usize, FieldProblem)> {
    let referring = items.iter().enumerate().map(|(index, item)| (index, item.references.as_slice()));
    unmet_of(referring, items, known)
}

/// The same of whoever refers, which may be one that is not written. Looks in the same write first,
/// then in what the store has.
pub fn unmet_of<'r>(
    referring: impl IntoIterator<Item = (usize, &'r [Reference])>,
    items: &[Checked],
    known: &KnownDefinitions,
) -> Vec<(usize, FieldProblem)> {
    let mut written: BTreeMap<(DefinitionKind, &DefinitionId), &Checked> = BTreeMap::new();
    for item in items {
        written.insert((item.new.kind, &item.new.id), item);
    }
    let mut problems = Vec::new();
    for (index, references) in referring {
        for reference in references {
            let stored = known.get(&(reference.kind, reference.id.clone()));
            let new = written.get(&(reference.kind, &reference.id));
            let newest = match new {
                Some(new) => {
                    let stored = stored.map(|stored| (stored.version, &stored.content_hash));
                    Some((change(stored, &new.new.content_hash).1, &new.new.library_id))
                }
                None => stored.map(|stored| (stored.version, &stored.library_id)),
            };
            if let Some(message) = unmet_reference(reference, newest) {
                problems.push((index, FieldProblem::new(&reference.field, message)));
            }
        }
    }
    problems
}

/// Tools of one list that go by one name: a model calls them by it, so the later ones could never be called. `names`
/// has those of tools by their ids.
pub fn namesakes<'r>(
    referring: impl IntoIterator<Item = (usize, &'r [Reference])>,
    names: &BTreeMap<DefinitionId, String>,
) -> Vec<(usize, FieldProblem)> {
    let mut problems = Vec::new();
    for (index, references) in referring {
        let mut first: BTreeMap<&str, &DefinitionId> = BTreeMap::new();
        // Who refers to tools lists what one model may call.
        for reference in references.iter().filter(|reference| reference.kind == DefinitionKind::Tool) {
            let Some(name) = names.get(&reference.id) else { continue };
            let other = *first.entry(name).or_insert(&reference.id);
            if *other != reference.id {
                let what = format!(
                    "the tools {other} and {} are both named {name:?}, by which a model calls them; rename one of \
                     them, or take it out",
                    reference.id
                );
                problems.push((index, FieldProblem::new(&reference.field, what)));
            }
        }
    }
    problems
}

/// A tool that a write gives another name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renamed {
    /// Its place in the list.
    pub index: usize,
    pub id: DefinitionId,
    pub name: String,
    /// The tools that have this name as well, once the list is written.
    pub others: BTreeSet<DefinitionId>,
}

/// Of those, the ones that a list of tools has beside another one of that name. `whose`: who has the list, in words.
pub fn hidden(renamed: &[Renamed], whose: &str, tools: &[DefinitionId]) -> Vec<(usize, FieldProblem)> {
    let mut problems = Vec::new();
    for one in renamed.iter().filter(|one| tools.contains(&one.id)) {
        let Some(other) = tools.iter().find(|tool| one.others.contains(*tool)) else { continue };
        let what = format!(
            "{whose} has the tools {other} and {}, which would both be named {:?}, by which a model calls them; choose \
             another name, or take one of them out there first, or in the same list",
            one.id, one.name
        );
        problems.push((one.index, FieldProblem::new("name", what)));
    }
    problems
}

fn unmet_reference(reference: &Reference, newest: Option<(u64, &Option<DefinitionId>)>) -> Option<String> {
    let Reference { kind, id, .. } = reference;
    let what = words(*kind);
    let Some((version, library)) = newest else {
        return Some(format!("there is no {what} {id}; write it first, or in the same list"));
    };
    if let Some(wanted) = reference.version.filter(|wanted| *wanted > version) {
        return Some(format!("there is no version {wanted} of {what} {id}; the newest is {version}"));
    }
    let wanted = reference.library_id.as_ref()?;
    (library.as_ref() != Some(wanted)).then(|| format!("{what} {id} is not of the library {wanted}"))
}
