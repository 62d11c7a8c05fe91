//! Reading what several bodies share: lists, notes of the application, the content of a message.

use schemas::json::Json;
use schemas::limits::{CONTENT_PARTS_MAX, METADATA_BYTES_MAX, NAME_BYTES_MAX, TEXT_BYTES_MAX};
use schemas::problem::Problem;
use serde_json::{Map, Value};

use crate::action::fields::{self, Object, Problems, kind_of, not_one_of};
use crate::action::hash;
use crate::chat::Part;

/// The fields of a body; anything but an object is refused.
pub fn whole<'v>(body: &'v Value, example: &str) -> Result<&'v Map<String, Value>, Box<Problem>> {
    body.as_object()
        .ok_or_else(|| fields::wrong("body", format!("must be a JSON object such as {example}, not {}", kind_of(body))))
}

/// The entries of a list with their paths. None if it is absent, no list, or too long.
pub fn list<'v>(object: &Object<'v>, name: &str, max: usize, problems: &mut Problems) -> Vec<(String, &'v Value)> {
    let Some(value) = object.get(name) else { return Vec::new() };
    let Some(items) = value.as_array() else {
        problems.add(object.path(name), format!("must be an array, not {}", kind_of(value)));
        return Vec::new();
    };
    if items.len() > max {
        problems.add(object.path(name), format!("has {} entries; at most {max} are allowed", items.len()));
        return Vec::new();
    }
    items.iter().enumerate().map(|(index, item)| (format!("{}[{index}]", object.path(name)), item)).collect()
}

/// The objects of a list.
pub fn objects<'v>(object: &Object<'v>, name: &str, max: usize, problems: &mut Problems) -> Vec<(String, Object<'v>)> {
    let mut objects = Vec::new();
    for (path, item) in list(object, name, max, problems) {
        match item.as_object() {
            Some(map) => objects.push((path.clone(), Object::new(&path, map))),
            None => problems.add(path, format!("must be an object, not {}", kind_of(item))),
        }
    }
    objects
}

/// Short texts, each once, in their order.
pub fn texts(object: &Object<'_>, name: &str, max: usize, bytes: usize, problems: &mut Problems) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for (path, item) in list(object, name, max, problems) {
        match item.as_str() {
            None => problems.add(path, format!("must be a string, not {}", kind_of(item))),
            Some(text) if text.trim().is_empty() => problems.add(path, "must not be blank; leave it out instead"),
            Some(text) if text.len() > bytes => {
                problems.add(path, format!("is {} bytes long; at most {bytes} are allowed", text.len()));
            }
            Some(text) if text.chars().any(char::is_control) => {
                problems.add(path, "must not contain control characters");
            }
            Some(text) if texts.iter().any(|known| known == text) => {}
            Some(text) => texts.push(text.to_owned()),
        }
    }
    texts
}

/// An object of the application's, which is not read here.
pub fn notes(object: &Object<'_>, name: &str, problems: &mut Problems) -> Option<Value> {
    object.object(name, problems);
    let value = object.get(name).filter(|value| value.is_object())?;
    let bytes = hash::size(value);
    if bytes > METADATA_BYTES_MAX {
        problems.add(object.path(name), format!("has {bytes} bytes; at most {METADATA_BYTES_MAX} are allowed"));
        return None;
    }
    Some(value.clone())
}

pub fn json_or_empty(value: Option<Value>) -> Json {
    Json::of(&value.unwrap_or_else(|| Value::Object(Map::new())))
}

/// One of a few words.
pub fn choice<T>(
    object: &Object<'_>,
    name: &str,
    names: &[&str],
    parse: impl Fn(&str) -> Option<T>,
    problems: &mut Problems,
) -> Option<T> {
    let text = object.string(name, problems)?;
    let found = parse(text).filter(|_| names.contains(&text));
    if found.is_none() {
        problems.add(object.path(name), not_one_of(text, names));
    }
    found
}

/// What the author of a message gives.
#[derive(Debug, Default)]
pub struct Said {
    pub text: Option<String>,
    pub content: Option<Value>,
    pub data: Option<Value>,
    pub name: Option<String>,
    pub metadata: Option<Value>,
}

pub const SAID: [&str; 5] = ["text", "content", "data", "name", "metadata"];

pub fn said(object: &Object<'_>, problems: &mut Problems) -> Said {
    let (has_text, has_content) = (object.has("text"), object.has("content"));
    let mut said = Said {
        data: object.get("data").cloned(),
        name: object.text("name", NAME_BYTES_MAX, problems).map(str::to_owned),
        metadata: notes(object, "metadata", problems),
        ..Said::default()
    };
    match (has_text, has_content) {
        (true, true) => problems.add(object.path("content"), "stands beside text; put the text into a part of it"),
        (false, false) => problems.add(object.path("text"), "is missing; send text, or content with parts"),
        (true, false) => said.text = text(object, problems),
        (false, true) => {
            if let Some(parts) = content(object, problems) {
                let text: String = parts.iter().filter_map(Part::as_text).collect();
                said.text = Some(text).filter(|text| !text.is_empty());
                said.content = object.get("content").cloned();
            }
        }
    }
    said
}

fn text(object: &Object<'_>, problems: &mut Problems) -> Option<String> {
    let text = object.string("text", problems)?;
    if text.trim().is_empty() {
        problems.add(object.path("text"), "must not be blank; send text, or content with parts");
        return None;
    }
    if text.len() > TEXT_BYTES_MAX {
        problems.add(object.path("text"), format!("has {} bytes; at most {TEXT_BYTES_MAX} are allowed", text.len()));
        return None;
    }
    Some(text.to_owned())
}

/// Texts and images: what a user can say to a model.
fn content(object: &Object<'_>, problems: &mut Problems) -> Option<Vec<Part>> {
    let items = list(object, "content", CONTENT_PARTS_MAX, problems);
    if items.is_empty() {
        problems.add(
            object.path("content"),
            "must have at least one part, such as {\"type\": \"text\", \"text\": \"hello\"}",
        );
        return None;
    }
    let mut parts = Vec::with_capacity(items.len());
    for (path, item) in items {
        match serde_json::from_value::<Part>(item.clone()) {
            Ok(part @ (Part::Text { signature: None, .. } | Part::Image { .. })) => parts.push(part),
            Ok(_) => problems.add(path, "must be a part of type text or image; others are the model's to make"),
            Err(error) => problems.add(path, format!("is no part of type text or image: {error}")),
        }
    }
    Some(parts)
}

/// Who acts, unless it is the token.
pub fn actor(object: &Object<'_>, default: &str, problems: &mut Problems) -> String {
    object.actor(problems).unwrap_or(default).to_owned()
}

/// The id in a body, or in the header `Idempotency-Key`, which is another place for it.
pub fn key<T: std::str::FromStr<Err = schemas::id::IdError> + PartialEq>(
    object: &Object<'_>,
    name: &str,
    header: Option<&str>,
    problems: &mut Problems,
) -> Option<T> {
    let in_body = object.id::<T>(name, problems);
    let Some(header) = header else { return in_body };
    match header.parse::<T>() {
        Ok(id) => {
            if in_body.as_ref().is_some_and(|given| *given != id) {
                let what = "differs from the header Idempotency-Key; send one of them, or the same text in both";
                problems.add(object.path(name), what);
            }
            Some(id)
        }
        Err(error) => {
            problems.add("Idempotency-Key", error.to_string());
            in_body
        }
    }
}
