//! Definitions as their authors send them, checked field by field: one file per kind.
//!
//! [`check`] collects every problem before it answers, and fills in all defaults, so that equal
//! meaning becomes equal content. Whether what a definition refers to exists is not known here:
//! [`Checked::references`] says what to look for, and [`plan::unmet`] judges what was found.

pub mod diff;
pub mod mcp;
pub mod plan;

mod action_config;
mod action_def;
mod agent;
mod library;
mod mapping;
mod model_profile;
mod native;
mod normal;
mod parts;
mod persona;
mod prompt_spec;
mod said;
mod schema;
mod secrets;
mod task;
mod template;
mod tool;

#[cfg(test)]
mod tests;

use schemas::definition::DefinitionKind;
use schemas::id::DefinitionId;
use schemas::json::Json;
use schemas::limits::DEFINITION_BYTES_MAX;
use schemas::problem::FieldProblem;
use serde_json::Value;

use crate::action::fields::{Object, Problems, kind_of};
use crate::action::hash;
pub use said::shown;

/// A definition ready to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct NewDefinition {
    pub kind: DefinitionKind,
    pub id: DefinitionId,
    pub name: String,
    pub library_id: Option<DefinitionId>,
    /// The projects of an agent, or the one that owns it.
    pub project_ids: Vec<DefinitionId>,
    /// Canonical, with all defaults.
    pub content: Json,
    /// SHA-256 of the content.
    pub content_hash: [u8; 32],
}

/// What another definition must exist for this one to make sense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Path of the field that refers.
    pub field: String,
    pub kind: DefinitionKind,
    pub id: DefinitionId,
    pub version: Option<u64>,
    /// The library that it must be of.
    pub library_id: Option<DefinitionId>,
}

/// A definition without problems of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    pub new: NewDefinition,
    /// The content as a value, as it is shown to who reads it back.
    pub value: Value,
    pub references: Vec<Reference>,
}

/// What reading a definition brings to light.
#[derive(Debug, Default)]
struct Found {
    problems: Problems,
    references: Vec<Reference>,
}

/// Checks one definition whole.
///
/// # Errors
/// Every problem that it has by itself, at most fifty.
pub fn check(kind: DefinitionKind, value: &Value) -> Result<Checked, Vec<FieldProblem>> {
    let Value::Object(map) = value else {
        let what = format!("must be a JSON object with the fields of a {}, not {}", words(kind), kind_of(value));
        return Err(vec![FieldProblem::new("", what)]);
    };
    let object = Object::new("", map);
    let found = read(kind, &object);
    let Some(id) = object.id::<DefinitionId>("id", &mut Problems::default()).filter(|_| found.problems.is_empty())
    else {
        return Err(found.problems.into_list());
    };
    let value = normal::normal(kind, value)
        .map_err(|error| vec![FieldProblem::new("", format!("cannot be read as a {}: {error}", words(kind)))])?;
    let text = hash::canonical(&value);
    if text.len() > DEFINITION_BYTES_MAX {
        let what = format!("has {} bytes; at most {DEFINITION_BYTES_MAX} are allowed", text.len());
        return Err(vec![FieldProblem::new("", what)]);
    }
    let new = NewDefinition {
        kind,
        id,
        name: value["name"].as_str().unwrap_or_default().to_owned(),
        library_id: id_at(&value["library_id"]),
        project_ids: projects(&value),
        content_hash: hash::sha256(&text),
        content: Json::lenient(&text),
    };
    let value = said::without_unsaid(kind, value);
    Ok(Checked { new, value, references: found.references })
}

/// What a definition refers to, as far as it can be read.
pub fn references(kind: DefinitionKind, value: &Value) -> Vec<Reference> {
    value.as_object().map(|map| read(kind, &Object::new("", map)).references).unwrap_or_default()
}

/// What is wrong with a schema that is not part of a definition, as those of MCP servers.
pub fn schema_problems(schema: &serde_json::Map<String, Value>) -> Vec<FieldProblem> {
    let mut problems = Problems::default();
    schema::check("", schema, &mut problems);
    problems.into_list()
}

/// A kind in words for people.
pub fn words(kind: DefinitionKind) -> String {
    kind.as_str().replace('_', " ")
}

fn read(kind: DefinitionKind, object: &Object<'_>) -> Found {
    let mut found = Found::default();
    // First: what is said of a key must not be hidden by what is said of its field.
    secrets::check(object, &mut found.problems);
    if parts::required(object, "id", "an id, so that writing it again changes nothing", &mut found.problems) {
        object.id::<DefinitionId>("id", &mut found.problems);
    }
    let check = match kind {
        DefinitionKind::Library => library::library,
        DefinitionKind::Project => library::project,
        DefinitionKind::ModelProfile => model_profile::check,
        DefinitionKind::PromptSpec => prompt_spec::check,
        DefinitionKind::ActionDef => action_def::check,
        DefinitionKind::Task => task::check,
        DefinitionKind::Tool => tool::check,
        DefinitionKind::Persona => persona::check,
        DefinitionKind::Agent => agent::check,
    };
    check(object, &mut found);
    found
}

fn id_at(value: &Value) -> Option<DefinitionId> {
    value.as_str().and_then(|text| DefinitionId::parse(text).ok())
}

fn projects(value: &Value) -> Vec<DefinitionId> {
    match value["project_ids"].as_array() {
        Some(list) => list.iter().filter_map(id_at).collect(),
        None => id_at(&value["project_id"]).into_iter().collect(),
    }
}
