//! What the kinds have in common: names, owners, references, bounded texts and numbers.

use schemas::definition::DefinitionKind;
use schemas::id::DefinitionId;
use schemas::limits::{DESCRIPTION_BYTES_MAX, ENTRIES_MAX, NAME_BYTES_MAX, PROMPT_BYTES_MAX};
use serde_json::{Map, Value};

use super::{Found, Reference};
use crate::action::fields::{self, Object, Problems};

/// Notes that a field is missing or blank, and what to give. Answers whether there is something to look at.
pub(super) fn required(object: &Object<'_>, name: &str, what: &str, problems: &mut Problems) -> bool {
    let wrong = match object.get(name) {
        None => "is missing",
        Some(Value::String(text)) if text.trim().is_empty() => "must not be blank",
        Some(_) => return true,
    };
    problems.add(object.path(name), format!("{wrong}; give {what}"));
    false
}

/// `name` and `description`, which every kind has.
pub(super) fn labels(object: &Object<'_>, problems: &mut Problems) {
    if required(object, "name", "a name for people", problems) {
        object.text("name", NAME_BYTES_MAX, problems);
    }
    prose(object, "description", DESCRIPTION_BYTES_MAX, problems);
}

/// Text of any number of lines.
pub(super) fn prose<'v>(object: &Object<'v>, name: &str, max: usize, problems: &mut Problems) -> Option<&'v str> {
    let text = object.string(name, problems)?;
    let wrong = if text.trim().is_empty() {
        "must not be blank; leave it out instead".to_owned()
    } else if text.len() > max {
        format!("is {} bytes long; at most {max} are allowed", text.len())
    } else if text.contains('\0') {
        "must not contain the character NUL".to_owned()
    } else {
        return Some(text);
    };
    problems.add(object.path(name), wrong);
    None
}

pub(super) fn prompt<'v>(object: &Object<'v>, name: &str, problems: &mut Problems) -> Option<&'v str> {
    prose(object, name, PROMPT_BYTES_MAX, problems)
}

/// Exactly one of a library and a project owns a definition (SPEC 4.1).
pub(super) fn owner(object: &Object<'_>, found: &mut Found) {
    let library = refer(object, "library_id", DefinitionKind::Library, found);
    let project = refer(object, "project_id", DefinitionKind::Project, found);
    match (object.has("library_id"), object.has("project_id")) {
        (false, false) => found.problems.add(
            object.path("library_id"),
            "MISSING_OWNER: give library_id, or project_id if it is of one project alone",
        ),
        (true, true) if library.is_some() && project.is_some() => found.problems.add(
            object.path("project_id"),
            "MULTIPLE_OWNERS: library_id and project_id are both given; leave one of them out",
        ),
        _ => {}
    }
}

/// An optional id of another definition.
pub(super) fn refer(object: &Object<'_>, name: &str, kind: DefinitionKind, found: &mut Found) -> Option<DefinitionId> {
    let id: DefinitionId = object.id(name, &mut found.problems)?;
    found.references.push(Reference {
        field: object.path(name),
        kind,
        id: id.clone(),
        version: None,
        library_id: None,
    });
    Some(id)
}

/// A version that a reference is pinned to; the reference was the last one found.
pub(super) fn pin(object: &Object<'_>, name: &str, found: &mut Found) {
    let version = object.whole(name, 1, u64::from(u32::MAX), &mut found.problems);
    if let Some(reference) = found.references.last_mut() {
        reference.version = version;
    }
}

/// A list of ids of other definitions, each once.
pub(super) fn refer_all(object: &Object<'_>, name: &str, kind: DefinitionKind, found: &mut Found) -> Vec<DefinitionId> {
    let ids = ids(object, name, &mut found.problems);
    for (index, id) in &ids {
        found.references.push(Reference {
            field: format!("{}[{index}]", object.path(name)),
            kind,
            id: id.clone(),
            version: None,
            library_id: None,
        });
    }
    ids.into_iter().map(|(_, id)| id).collect()
}

/// A list of ids, each once, with their places.
pub(super) fn ids(object: &Object<'_>, name: &str, problems: &mut Problems) -> Vec<(usize, DefinitionId)> {
    let mut ids: Vec<(usize, DefinitionId)> = Vec::new();
    for (index, value) in list(object, name, ENTRIES_MAX, problems).iter().enumerate() {
        let path = format!("{}[{index}]", object.path(name));
        match value.as_str().map(DefinitionId::parse) {
            Some(Ok(id)) if ids.iter().any(|(_, other)| *other == id) => {
                problems.add(path, format!("{id} is there twice; name it once"));
            }
            Some(Ok(id)) => ids.push((index, id)),
            Some(Err(error)) => problems.add(path, error.to_string()),
            None => problems.add(path, format!("must be an id, not {}", fields::kind_of(value))),
        }
    }
    ids
}

/// The elements of a list; none if it is absent or wrong.
pub(super) fn list<'v>(object: &Object<'v>, name: &str, max: usize, problems: &mut Problems) -> &'v [Value] {
    let Some(value) = object.get(name) else { return &[] };
    match value.as_array() {
        Some(items) if items.len() <= max => items,
        Some(items) => {
            problems.add(object.path(name), format!("has {} elements; at most {max} are allowed", items.len()));
            &[]
        }
        None => {
            problems.add(object.path(name), format!("must be an array, not {}", fields::kind_of(value)));
            &[]
        }
    }
}

/// The objects of a list, each at its path; what is none is reported.
pub(super) fn objects<'v>(object: &Object<'v>, name: &str, max: usize, problems: &mut Problems) -> Vec<Object<'v>> {
    let mut objects = Vec::new();
    for (index, value) in list(object, name, max, problems).iter().enumerate() {
        let path = format!("{}[{index}]", object.path(name));
        match value.as_object() {
            Some(map) => objects.push(Object::new(&path, map)),
            None => problems.add(path, format!("must be an object, not {}", fields::kind_of(value))),
        }
    }
    objects
}

/// Strings of a list, out of `allowed`.
pub(super) fn choices(object: &Object<'_>, name: &str, allowed: &[&str], problems: &mut Problems) {
    for (index, value) in list(object, name, ENTRIES_MAX, problems).iter().enumerate() {
        let path = format!("{}[{index}]", object.path(name));
        match value.as_str() {
            Some(text) if allowed.contains(&text) => {}
            Some(text) => problems.add(path, fields::not_one_of(text, allowed)),
            None => problems.add(path, format!("must be a string, not {}", fields::kind_of(value))),
        }
    }
}

/// A string out of a few.
pub(super) fn choice<'v>(
    object: &Object<'v>,
    name: &str,
    allowed: &[&str],
    problems: &mut Problems,
) -> Option<&'v str> {
    let text = object.string(name, problems)?;
    if allowed.contains(&text) {
        return Some(text);
    }
    problems.add(object.path(name), fields::not_one_of(text, allowed));
    None
}

/// A number within the bounds, both included.
pub(super) fn decimal(object: &Object<'_>, name: &str, min: f64, max: f64, problems: &mut Problems) -> Option<f64> {
    let value = object.get(name)?;
    let number = value.as_f64().filter(|number| (min..=max).contains(number));
    if number.is_none() {
        let given = value.as_f64().map_or_else(|| fields::kind_of(value).to_owned(), |number| number.to_string());
        problems.add(object.path(name), format!("must be a number from {min} to {max}, not {given}"));
    }
    number
}

/// The map in a field, if it is an object.
pub(super) fn map<'v>(object: &Object<'v>, name: &str, problems: &mut Problems) -> Option<&'v Map<String, Value>> {
    object.object(name, problems);
    object.get(name).and_then(Value::as_object)
}
