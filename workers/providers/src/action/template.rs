//! What the templates of an action see, and the key of its calls.

use domain::ports::{ActionCall, ActionFailure};
use domain::template::{Escape, Template, rendered};
use domain::tool::Whose;
use schemas::limits::MODEL_REQUEST_BYTES_MAX;
use serde_json::{Map, Value};

/// What all places in one piece of JSON may become: thousands of them could each show the same large input.
const FILLED_BYTES_MAX: usize = MODEL_REQUEST_BYTES_MAX;

/// As [`domain::tool::ActionRequest::seen`] has it.
pub fn context(call: &ActionCall) -> Value {
    call.request.seen(Whose {
        operation_id: &call.operation_id,
        session_id: &call.session_id,
        conversation_id: &call.conversation_id,
        turn_id: &call.turn_id,
        tool: &call.tool,
    })
}

/// The key under which a target knows a repeat: the same for all attempts, another for any other call.
pub fn key(call: &ActionCall, context: &Value) -> Result<String, ActionFailure> {
    match &call.request.idempotency_key {
        Some(template) => text(template, context, Escape::Nothing, "idempotency_key"),
        None => Ok(format!("{}:{}", call.namespace, call.operation_id)),
    }
}

/// A rendered text; `place` names it in problems.
pub fn text(template: &str, context: &Value, escape: Escape, place: &str) -> Result<String, ActionFailure> {
    rendered(template, context, escape).map_err(|why| ActionFailure::invalid(format!("{place}: {why}")))
}

/// JSON with templates in its texts. A text that is one place becomes the value itself.
pub fn json_of(value: &Value, context: &Value, place: &str) -> Result<Value, ActionFailure> {
    let mut left = FILLED_BYTES_MAX;
    filled(value, context, place, &mut left)
}

fn filled(value: &Value, context: &Value, place: &str, left: &mut usize) -> Result<Value, ActionFailure> {
    Ok(match value {
        Value::String(template) if template.contains("{{") => {
            let read = Template::parse(template).map_err(|why| ActionFailure::invalid(format!("{place}: {why}")))?;
            let value = match read.value(context) {
                Some(value) => value,
                None => text(template, context, Escape::Nothing, place)?.into(),
            };
            let bytes = value.as_str().map_or_else(|| value.to_string().len(), str::len);
            let rest = left.checked_sub(bytes).ok_or_else(|| {
                let most = format!("its places show more than {FILLED_BYTES_MAX} bytes; give it less to show");
                ActionFailure::invalid(format!("{place}: {most}"))
            })?;
            *left = rest;
            value
        }
        Value::Array(items) => {
            let items = items.iter().map(|item| filled(item, context, place, left));
            Value::Array(items.collect::<Result<Vec<_>, _>>()?)
        }
        Value::Object(map) => {
            let fields = map.iter().map(|(name, value)| Ok((name.clone(), filled(value, context, place, left)?)));
            Value::Object(fields.collect::<Result<Map<_, _>, ActionFailure>>()?)
        }
        other => other.clone(),
    })
}
