//! The frames of streams keep their published form.

use serde_json::{Map, Value, json};
use utoipa::OpenApi;

use super::{ClientFrame, ConversationFrame};
use crate::problem::Code;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/stream.schema.json");
const COMPONENTS: &str = "#/components/schemas/";

#[derive(OpenApi)]
#[openapi(components(schemas(ConversationFrame, ClientFrame)))]
struct Frames;

/// The schema of both directions, made from the types.
fn schema() -> Value {
    let whole = serde_json::to_value(Frames::openapi()).unwrap();
    let mut definitions = whole["components"]["schemas"].clone();
    localise(&mut definitions);
    definitions["ConversationFrame"]["properties"]["v"] = json!({"const": super::FRAME_VERSION});
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://stepfleet.dev/schemas/stream.schema.json",
        "title": "Frame of a conversation's stream",
        "description": "What GET /api/conversations/{id}/events and the WebSocket /conversations/{id} send (docs/streams.md). \
                        What a client may send over the WebSocket is $defs/ClientFrame.",
        "$ref": "#/$defs/ConversationFrame",
        "$defs": definitions,
    })
}

/// References lead to the definitions beside them.
fn localise(value: &mut Value) {
    match value {
        Value::Object(map) => {
            if let Some(Value::String(reference)) = map.get_mut("$ref") {
                *reference = reference.replace(COMPONENTS, "#/$defs/");
            }
            map.values_mut().for_each(localise);
        }
        Value::Array(items) => items.iter_mut().for_each(localise),
        _ => {}
    }
}

#[test]
fn the_published_schema_is_that_of_the_types() {
    let text = format!("{}\n", serde_json::to_string_pretty(&sorted(schema())).unwrap());
    if std::env::var_os("STEPFLEET_WRITE_SCHEMAS").is_some() {
        std::fs::write(PATH, &text).unwrap();
    }
    let published = std::fs::read_to_string(PATH).unwrap_or_default();
    let hint = "schemas/stream.schema.json is out of date: run the tests once with STEPFLEET_WRITE_SCHEMAS=1";
    assert!(published == text, "{hint}");
}

/// The order of a map depends on how serde_json was built.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut fields: Vec<(String, Value)> = map.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            fields.sort_by(|(one, _), (two, _)| one.cmp(two));
            Value::Object(fields.into_iter().collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}

#[test]
fn codes_are_published_as_they_are_sent() {
    let sent: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(schema()["$defs"]["Code"]["enum"], json!(sent));
}

#[test]
fn every_reference_is_defined() {
    let schema = schema();
    let mut references = Vec::new();
    collect(&schema, &mut references);
    assert!(references.len() > 20, "{references:?}");
    for reference in references {
        let name = reference.strip_prefix("#/$defs/").unwrap_or_else(|| panic!("{reference} leads elsewhere"));
        assert!(schema["$defs"].get(name).is_some(), "{name} is not defined");
    }
}

fn collect(value: &Value, references: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            references.extend(map.get("$ref").and_then(Value::as_str).map(str::to_owned));
            map.values().for_each(|inner| collect(inner, references));
        }
        Value::Array(items) => items.iter().for_each(|inner| collect(inner, references)),
        _ => {}
    }
}
