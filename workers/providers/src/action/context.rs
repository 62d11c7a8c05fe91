//! `context`: reshapes and checks the input, without the world.

use std::collections::BTreeMap;

use domain::chat::ToolErrorCode;
use domain::ports::{ActionCall, ActionFailure};
use domain::tool::{mapped, schema};
use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Debug, Deserialize)]
struct Settings {
    #[serde(default)]
    fields: Option<BTreeMap<String, String>>,
    #[serde(default)]
    schema: Option<Map<String, Value>>,
}

pub fn run(call: &ActionCall) -> Result<Value, ActionFailure> {
    let settings: Settings = super::settings(call)?;
    match call.request.operation.as_str() {
        "transform" | "validate" => {}
        _ => return Err(super::unavailable(call)),
    }
    let input = &call.request.input;
    let made = match &settings.fields {
        Some(fields) => mapped(&paths(fields)?, input),
        None => input.clone(),
    };
    let errors = settings.schema.as_ref().map(|schema| schema::check(schema, &made)).unwrap_or_default();
    if errors.is_empty() {
        return Ok(made);
    }
    let message = format!("the input does not fit the schema: {}", schema::words(&errors));
    Err(ActionFailure { may_have_happened: false, ..ActionFailure::business(ToolErrorCode::InvalidInput, message) })
}

/// Expressions that are paths of the input.
fn paths(fields: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>, ActionFailure> {
    let path = |(field, expression): (&String, &String)| {
        let text = expression.trim();
        let text = text.strip_prefix("$.").unwrap_or(text);
        let is_path = |path: &str| {
            path.split('.').all(|name| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
        };
        match text.strip_prefix("input.") {
            Some(path) if is_path(path) => Ok((field.clone(), path.to_owned())),
            _ if text == "input" => Ok((field.clone(), String::new())),
            _ => Err(ActionFailure::invalid(format!(
                "the expression of {field} is more than a path, as in input.name; expressions are not run yet, go on without it"
            ))),
        }
    };
    fields.iter().map(path).collect()
}
