//! What callers of `memory.write`, `.update`, `.search`, `.list`, `.read` and `.delete` send, checked
//! field by field: every problem is reported. Neither agent nor namespace is a field.

mod list;
mod read;
mod search;
mod update;
mod write;

use schemas::limits::{ENTRIES_MAX, MEMORY_LABEL_BYTES_MAX, MEMORY_METADATA_BYTES_MAX, MEMORY_TYPE_BYTES_MAX};
use schemas::memory::MemoryTier;
use schemas::problem::FieldProblem;
use serde_json::{Map, Value};

pub use list::MemoryList;
pub use read::MemoryRef;
pub use search::MemorySearch;
pub use update::MemoryUpdate;
pub use write::MemoryWrite;

use super::filter::MemoryFilter;
use crate::action::fields::{Object, Problems, kind_of, not_one_of};
use crate::action::hash;

/// Reads an object, and gives what it made of it unless there are problems.
fn checked<T>(
    value: &Value,
    known: &[&str],
    read: impl FnOnce(&Object<'_>, &mut Problems) -> Option<T>,
) -> Result<T, Vec<FieldProblem>> {
    let Some(map) = value.as_object() else {
        return Err(vec![FieldProblem::new("", format!("must be an object, not {}", kind_of(value)))]);
    };
    let (object, mut problems) = (Object::new("", map), Problems::default());
    object.refuse_unknown(known, &mut problems);
    match read(&object, &mut problems) {
        Some(made) if problems.is_empty() => Ok(made),
        _ => Err(problems.into_list()),
    }
}

fn label(object: &Object<'_>, problems: &mut Problems) -> Option<String> {
    object.text("label", MEMORY_LABEL_BYTES_MAX, problems).map(str::to_owned)
}

fn kind(object: &Object<'_>, problems: &mut Problems) -> Option<String> {
    object.text("type", MEMORY_TYPE_BYTES_MAX, problems).map(str::to_owned)
}

const TIERS: [&str; 3] = ["core", "working", "archival"];

fn tier(object: &Object<'_>, problems: &mut Problems) -> Option<MemoryTier> {
    let text = object.string("tier", problems)?;
    let tier = MemoryTier::parse(text);
    if tier.is_none() {
        problems.add(object.path("tier"), not_one_of(text, &TIERS));
    }
    tier
}

/// A number from 0 to 1.
fn share(object: &Object<'_>, name: &str, problems: &mut Problems) -> Option<f64> {
    let value = object.get(name)?;
    let number = value.as_f64().filter(|number| (0.0..=1.0).contains(number));
    if number.is_none() {
        let given = value.as_f64().map_or_else(|| kind_of(value).to_owned(), |number| number.to_string());
        problems.add(object.path(name), format!("must be a number from 0 to 1, not {given}"));
    }
    number
}

/// Any text but a blank one, of at most `max` bytes.
fn prose(object: &Object<'_>, name: &str, max: usize, what: &str, problems: &mut Problems) -> Option<String> {
    let text = object.string(name, problems)?;
    let wrong = if text.trim().is_empty() {
        format!("must not be blank; give {what}")
    } else if text.len() > max {
        format!("is {} bytes long; at most {max} are allowed", text.len())
    } else if text.contains('\0') {
        "must not contain the character NUL".to_owned()
    } else {
        return Some(text.to_owned());
    };
    problems.add(object.path(name), wrong);
    None
}

fn metadata(object: &Object<'_>, problems: &mut Problems) -> Option<Map<String, Value>> {
    object.object("metadata", problems);
    let map = object.get("metadata")?.as_object()?;
    let bytes = hash::size(object.get("metadata")?);
    if bytes > MEMORY_METADATA_BYTES_MAX {
        let message = format!("is {bytes} bytes of JSON; at most {MEMORY_METADATA_BYTES_MAX} are allowed");
        problems.add(object.path("metadata"), message);
        return None;
    }
    if mentions_nul(object.get("metadata")?) {
        problems.add(object.path("metadata"), "must not contain the character NUL");
        return None;
    }
    Some(map.clone())
}

fn mentions_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(mentions_nul),
        Value::Object(map) => map.iter().any(|(name, value)| name.contains('\0') || mentions_nul(value)),
        _ => false,
    }
}

/// Fields that searches and lists are narrowed with.
const FILTERS: [&str; 5] = ["tiers", "types", "min_significance", "metadata", "since"];

fn filter(object: &Object<'_>, problems: &mut Problems) -> MemoryFilter {
    let mut tiers = Vec::new();
    for (path, text) in strings(object, "tiers", problems) {
        match MemoryTier::parse(text) {
            Some(tier) => tiers.push(tier),
            None => problems.add(path, not_one_of(text, &TIERS)),
        }
    }
    MemoryFilter {
        tiers,
        kinds: strings(object, "types", problems).into_iter().map(|(_, text)| text.to_owned()).collect(),
        min_significance: share(object, "min_significance", problems),
        metadata: metadata(object, problems).unwrap_or_default(),
        since_ms: time(object, "since", problems),
    }
}

/// Strings of a list, each with its path.
fn strings<'v>(object: &Object<'v>, name: &str, problems: &mut Problems) -> Vec<(String, &'v str)> {
    let Some(value) = object.get(name) else { return Vec::new() };
    let Some(items) = value.as_array() else {
        problems.add(object.path(name), format!("must be an array of strings, not {}", kind_of(value)));
        return Vec::new();
    };
    if items.len() > ENTRIES_MAX {
        problems.add(object.path(name), format!("has {} elements; at most {ENTRIES_MAX} are allowed", items.len()));
        return Vec::new();
    }
    let mut texts = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let path = format!("{}[{index}]", object.path(name));
        match item.as_str() {
            Some(text) => texts.push((path, text)),
            None => problems.add(path, format!("must be a string, not {}", kind_of(item))),
        }
    }
    texts
}

fn time(object: &Object<'_>, name: &str, problems: &mut Problems) -> Option<i64> {
    let text = object.string(name, problems)?;
    let time = crate::time::parse_rfc3339(text);
    if time.is_none() {
        problems.add(object.path(name), "is no time; write it as in 2026-01-31T08:30:00Z");
    }
    time
}
