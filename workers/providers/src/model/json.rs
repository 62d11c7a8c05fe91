//! Helpers for JSON that is put together, read or sent.

use domain::chat::ToolCall;
use schemas::json::is_too_deep;
use serde_json::{Map, Value, json};

/// Appends to a text field; what was no text becomes one.
pub fn append(object: &mut Value, field: &str, text: &str) {
    let Value::Object(map) = object else { return };
    match map.get_mut(field) {
        Some(Value::String(known)) => known.push_str(text),
        _ => {
            map.insert(field.to_owned(), text.into());
        }
    }
}

/// Takes over the fields of `from` that are not null.
pub fn merge(into: &mut Value, from: &Value) {
    let (Value::Object(into), Value::Object(from)) = (into, from) else { return };
    for (key, value) in from.iter().filter(|(_, value)| !value.is_null()) {
        into.insert(key.clone(), value.clone());
    }
}

/// Adds what the caller wants besides: fields that are set already stay, objects are filled up.
pub fn fill_up(body: &mut Value, extra: &Map<String, Value>) {
    let Value::Object(body) = body else { return };
    for (key, value) in extra {
        match (body.get_mut(key), value) {
            (None, _) => {
                body.insert(key.clone(), value.clone());
            }
            (Some(known @ Value::Object(_)), Value::Object(more)) => fill_up(known, more),
            _ => {}
        }
    }
}

/// Text fields, of which some servers send an empty one for none.
pub fn text<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value.get(field).and_then(Value::as_str).filter(|text| !text.is_empty())
}

pub fn number(value: &Value, field: &str) -> u64 {
    value.get(field).and_then(Value::as_u64).unwrap_or(0)
}

/// Reads a tool call's arguments from their text. What is no JSON object is kept as it came, and
/// the call marked: the model is told, and may correct itself.
pub fn tool_call(id: String, name: &str, arguments: &str) -> ToolCall {
    let (input, invalid) = match serde_json::from_str(arguments) {
        Ok(input @ Value::Object(_)) if !is_too_deep(&input) => (input, None),
        // A tool without parameters is called with nothing.
        _ if arguments.trim().is_empty() => (json!({}), None),
        _ => (json!({}), Some(arguments.to_owned())),
    };
    ToolCall { id, name: name.to_owned(), input, invalid, signature: None }
}

/// The same for the last call of an answer that was cut short. Without arguments it is none of a tool that takes
/// nothing: what it was to be called with never came.
pub fn last_call(id: String, name: &str, arguments: &str) -> ToolCall {
    let call = tool_call(id, name, arguments);
    if arguments.trim().is_empty() { ToolCall { invalid: Some(arguments.to_owned()), ..call } } else { call }
}

/// The input of a call for a provider that wants an object back, whatever the model wrote.
pub fn input_object(call: &ToolCall) -> Value {
    match &call.invalid {
        Some(text) => json!({"INVALID_JSON": text}),
        None if call.input.is_object() => call.input.clone(),
        None => json!({}),
    }
}

/// The arguments of a call for a provider that wants their text back. A blank one is refused by servers that read it.
pub fn input_text(call: &ToolCall) -> String {
    call.invalid.clone().filter(|text| !text.trim().is_empty()).unwrap_or_else(|| call.input.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_an_object_or_kept_as_they_came() {
        let read = |text| {
            let call = tool_call("c".to_owned(), "t", text);
            (call.input, call.invalid)
        };
        assert_eq!(read("{\"a\": 1}"), (json!({"a": 1}), None));
        assert_eq!(read(" "), (json!({}), None));
        for broken in ["{\"a\": ", "[1]", "7", "null", "{} {}"] {
            assert_eq!(read(broken), (json!({}), Some(broken.to_owned())), "{broken}");
        }
        let call = tool_call("c".to_owned(), "t", "{\"a\"");
        assert_eq!((input_object(&call), input_text(&call)), (json!({"INVALID_JSON": "{\"a\""}), "{\"a\"".to_owned()));
    }

    #[test]
    fn the_last_call_of_a_cut_answer_has_arguments_or_is_invalid() {
        let last = |text| last_call("c".to_owned(), "t", text);
        for whole in ["{\"a\": 1}", "{}", "{\"a\""] {
            assert_eq!(last(whole), tool_call("c".to_owned(), "t", whole), "{whole}");
        }
        for blank in ["", " "] {
            let call = last(blank);
            assert_eq!((&call.input, call.invalid.as_deref()), (&json!({}), Some(blank)));
            assert_eq!((input_object(&call), input_text(&call)), (json!({"INVALID_JSON": blank}), "{}".to_owned()));
        }
    }

    #[test]
    fn extras_never_replace_what_is_set() {
        let mut body = json!({"model": "m", "config": {"a": 1}});
        let extra = json!({"model": "x", "config": {"a": 2, "b": 3}, "seed": 4});
        fill_up(&mut body, extra.as_object().expect("an object"));
        assert_eq!(body, json!({"model": "m", "config": {"a": 1, "b": 3}, "seed": 4}));
    }
}
