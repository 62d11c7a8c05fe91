//! What the templates of an action see, and the key of its calls.

use domain::ports::{ActionCall, ActionFailure};
use domain::template::{Escape, Template, rendered};
use domain::tool::Whose;
use schemas::limits::MODEL_REQUEST_BYTES_MAX;
use serde_json::{Map, Value};

/// What all places in one piece of JSON may become: thousands of them could each show the same large input.
const FILLED_BYTES_MAX: usize = MODEL_REQUEST_BYTES_MAX;
/// What a value takes in memory beside its text, about: `[0,0,0]` is a few bytes written down, and many more here.
const NODE_BYTES: usize = 64;

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
            *left = left.checked_sub(bytes_of(&value)).ok_or_else(|| {
                let most = format!("its places show more than {FILLED_BYTES_MAX} bytes, {NODE_BYTES} for each value");
                ActionFailure::invalid(format!("{place}: {most}; give it less to show"))
            })?;
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

/// What a value takes in memory.
fn bytes_of(value: &Value) -> usize {
    let within: usize = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(bytes_of).sum(),
        Value::Object(map) => map.iter().map(|(name, value)| name.len() + bytes_of(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    NODE_BYTES + within
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_places_show_is_counted_as_it_lies_in_memory() {
        let seen = json!({"zeros": vec![0; 100_000], "text": "x".repeat(200_000), "names": {"name": [null]}});
        let filled = |place: &str, times: usize| json_of(&json!(vec![place; times]), &seen, "body");
        // Written down, both are 200 KB each time.
        assert!(filled("{{text}}", 100).is_ok());
        assert!(filled("{{zeros}}", 5).is_ok());
        for (place, times) in [("{{text}}", 200), ("{{zeros}}", 6), ("{{nothing}}", 600_000)] {
            let failed = filled(place, times).expect_err(place);
            assert!(failed.error.message.contains("its places show more than 33554432 bytes"), "{failed:?}");
        }
        assert_eq!(bytes_of(&seen["names"]), 3 * NODE_BYTES + 4);
        assert_eq!(bytes_of(&json!("four")), NODE_BYTES + 4);
    }
}
