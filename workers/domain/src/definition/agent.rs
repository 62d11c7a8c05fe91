//! Agents.

use schemas::definition::DefinitionKind;
use schemas::id::DefinitionId;

use super::{Found, parts, persona};
use crate::action::fields::Object;

pub(super) fn check(object: &Object<'_>, found: &mut Found) {
    let known = ["id", "name", "description", "project_ids", "persona_ref", "persona_inline"];
    object.refuse_unknown(&known, &mut found.problems);
    parts::labels(object, &mut found.problems);
    let projects = parts::refer_all(object, "project_ids", DefinitionKind::Project, found);
    if projects.is_empty() {
        found.problems.add("project_ids", "is missing; an agent works in at least one project");
    }
    match (object.has("persona_ref"), object.has("persona_inline")) {
        (false, false) => found.problems.add(
            "persona_ref",
            "is missing; give persona_ref as in {\"persona_id\": \"writer\"}, or persona_inline with a persona",
        ),
        (true, true) => {
            found.problems.add("persona_inline", "stands beside persona_ref; leave one of them out");
        }
        (true, false) => reference(&object.object("persona_ref", &mut found.problems), found),
        (false, true) => {
            let inline = object.object("persona_inline", &mut found.problems);
            if object.get("persona_inline").is_some_and(serde_json::Value::is_object) {
                persona::inline(&inline, found);
            }
        }
    }
}

fn reference(object: &Object<'_>, found: &mut Found) {
    object.refuse_unknown(&["persona_id", "library_id", "version"], &mut found.problems);
    let library = object.id::<DefinitionId>("library_id", &mut found.problems);
    if !parts::required(object, "persona_id", "the id of a persona", &mut found.problems) {
        return;
    }
    if parts::refer(object, "persona_id", DefinitionKind::Persona, found).is_some() {
        parts::pin(object, "version", found);
        if let Some(reference) = found.references.last_mut() {
            reference.library_id = library;
        }
    }
}
