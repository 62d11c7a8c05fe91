//! Mappings: from a field to where its value comes from.

use schemas::limits::{ENTRIES_MAX, EXPRESSION_CHARS_MAX};
use serde_json::{Map, Value};

use super::parts;
use crate::action::fields::{self, Object, Problems};

const PATH_BYTES_MAX: usize = 256;

/// From field of the target to field of the input: paths on both sides (SPEC W-TOOL-05).
pub(super) fn fields(object: &Object<'_>, name: &str, schema: Option<&Value>, problems: &mut Problems) {
    for (path, target, source) in entries(object, name, problems) {
        if let Err(why) = is_path(target) {
            problems.add(path, format!("is no field of a target: {why}"));
            continue;
        }
        let Some(source) = source.as_str() else {
            let given = fields::kind_of(source);
            problems.add(path, format!("must name a field of the input as a string, as in \"query\", not {given}"));
            continue;
        };
        let source = source.strip_prefix("$.").unwrap_or(source);
        let source = source.strip_prefix("input.").unwrap_or(source);
        if let Err(why) = is_path(source) {
            problems.add(path, format!("{source:?} is no field of the input: {why}"));
        } else if let Some(known) = schema.and_then(closed) {
            let first = source.split('.').next().unwrap_or_default();
            if !known.iter().any(|field| field == first) {
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                let what = fields::not_one_of(first, &known);
                problems.add(path, format!("names a field that input_schema does not have: {what}"));
            }
        }
    }
}

/// From place to expression over the context (SPEC 4.3).
pub(super) fn expressions(object: &Object<'_>, name: &str, problems: &mut Problems) {
    for (path, place, value) in entries(object, name, problems) {
        if let Err(why) = is_path(place) {
            problems.add(path, format!("is no place: {why}"));
            continue;
        }
        match value.as_str() {
            Some(text) => expression(path, text, problems),
            None => {
                let given = fields::kind_of(value);
                problems.add(path, format!("must be an expression in a string, as in \"input.query\", not {given}"));
            }
        }
    }
}

pub(super) fn expression(path: String, text: &str, problems: &mut Problems) {
    if text.trim().is_empty() {
        problems.add(path, "must not be blank; write an expression, as in input.query");
    } else if text.chars().count() > EXPRESSION_CHARS_MAX {
        problems.add(path, format!("is too long; at most {EXPRESSION_CHARS_MAX} characters are allowed"));
    }
}

fn entries<'v>(object: &Object<'v>, name: &str, problems: &mut Problems) -> Vec<(String, &'v str, &'v Value)> {
    let Some(map): Option<&'v Map<String, Value>> = parts::map(object, name, problems) else { return Vec::new() };
    if map.len() > ENTRIES_MAX {
        problems.add(object.path(name), format!("has {} entries; at most {ENTRIES_MAX} are allowed", map.len()));
        return Vec::new();
    }
    let path = |key: &str| format!("{}.{}", object.path(name), key.chars().take(64).collect::<String>());
    map.iter().map(|(key, value)| (path(key), key.as_str(), value)).collect()
}

/// Names joined by dots.
fn is_path(text: &str) -> Result<(), String> {
    let is_name = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || "_-$".contains(c));
    if text.len() > PATH_BYTES_MAX {
        return Err(format!("it is {} bytes long; at most {PATH_BYTES_MAX} are allowed", text.len()));
    }
    if text.split('.').all(is_name) {
        return Ok(());
    }
    Err("names of letters, digits, _ and - are joined by dots, as in address.city".to_owned())
}

/// The fields of a schema that allows no others.
fn closed(schema: &Value) -> Option<Vec<String>> {
    let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    let properties = schema.get("properties").and_then(Value::as_object).filter(|_| is_closed)?;
    Some(properties.keys().cloned().collect())
}
