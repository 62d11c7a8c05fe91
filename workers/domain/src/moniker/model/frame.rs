//! Reads a model's answer as a frame. Models forget fields and dress JSON up; what can be
//! completed without guessing at meaning is completed, the rest is a problem to ask again with.

use schemas::frame::{FrameIn, FrameOut};
use serde_json::{Map, Value};

use crate::moniker::answer::{find_object, following, read_frame};
use crate::moniker::settings::kind_of;

/// # Errors
/// What is wrong, in words that the model can act upon.
pub fn read_answer(asked: &FrameIn, text: &str) -> Result<FrameOut, String> {
    if text.trim().is_empty() {
        return Err("the answer is empty; answer with one JSON object".to_owned());
    }
    let Some(Value::Object(mut map)) = find_object(text) else {
        return Err(json_problem(text));
    };
    if !KNOWN.iter().any(|key| map.contains_key(*key)) {
        return Err(format!("the JSON object has none of the fields {}", KNOWN.join(", ")));
    }
    complete(asked, &mut map);
    if asked.state.is_object() && !map.get("state").is_some_and(Value::is_object) {
        return Err(format!("state must be an object, not {}", map.get("state").map_or("nothing", kind_of)));
    }
    read_frame(&asked.step, Value::Object(map))
}

const KNOWN: [&str; 6] = ["next_step", "state", "text", "data", "done", "notes"];

/// Fills in what has one sensible value: the step is the one asked for, the state stays as it
/// was, the next step is counted on, scalars become texts and words become booleans.
fn complete(asked: &FrameIn, map: &mut Map<String, Value>) {
    map.insert("step".to_owned(), asked.step.as_str().into());
    if map.get("state").is_none_or(Value::is_null) {
        map.insert("state".to_owned(), asked.state.clone());
    }
    if map.get("next_step").is_none_or(|next| next.is_null() || next.as_str() == Some("")) {
        map.insert("next_step".to_owned(), following(&asked.step).as_str().into());
    }
    for key in ["next_step", "text", "notes"] {
        if let Some(scalar @ (Value::Number(_) | Value::Bool(_))) = map.get(key) {
            let text = scalar.to_string();
            map.insert(key.to_owned(), text.into());
        }
    }
    if let Some(notes @ (Value::Array(_) | Value::Object(_))) = map.get("notes") {
        let text = notes.to_string();
        map.insert("notes".to_owned(), text.into());
    }
    if let Some(word) = map.get("done").and_then(Value::as_str) {
        let done = match word.to_ascii_lowercase().as_str() {
            "true" => true,
            "false" => false,
            _ => return,
        };
        map.insert("done".to_owned(), done.into());
    }
}

fn json_problem(text: &str) -> String {
    match text.find('{') {
        None => "the answer holds no JSON object".to_owned(),
        Some(at) => match serde_json::from_str::<Value>(text[at..].trim()) {
            Err(error) => format!("the answer is not valid JSON: {error}"),
            Ok(_) => "the answer holds no JSON object".to_owned(),
        },
    }
}
