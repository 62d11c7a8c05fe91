//! The fingerprint that tells a repeated action from another one under the same id.

use std::fmt::Write;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// Fingerprint and size of a body.
pub struct Hashed {
    pub sha256: [u8; 32],
    /// Length of the canonical text.
    pub bytes: usize,
}

/// SHA-256 over the canonical JSON of what the caller sent: keys sorted, no white space, without
/// `action_id` (that is what it is looked up by, and it may have come in a header).
pub fn body(map: &Map<String, Value>) -> Hashed {
    let mut text = String::new();
    write_object(&mut text, map, Some("action_id"));
    Hashed { sha256: Sha256::digest(text.as_bytes()).into(), bytes: text.len() }
}

/// Length of the canonical text of a value.
pub fn size(value: &Value) -> usize {
    canonical(value).len()
}

/// The text that is the same for equal values: keys sorted, no white space.
pub fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write_value(&mut text, value);
    text
}

/// Bytes as people write hashes.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String cannot fail.
        _ = write!(text, "{byte:02x}");
        text
    })
}

/// SHA-256 of a text.
pub fn sha256(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

fn write_value(out: &mut String, value: &Value) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_value(out, item);
            }
            out.push(']');
        }
        Value::Object(map) => write_object(out, map, None),
        // Writing to a String cannot fail.
        scalar => _ = write!(out, "{scalar}"),
    }
}

/// The order of a map depends on how serde_json was built, so keys are sorted here.
fn write_object(out: &mut String, map: &Map<String, Value>, except: Option<&str>) {
    let mut fields: Vec<_> = map.iter().filter(|(key, _)| Some(key.as_str()) != except).collect();
    fields.sort_by_key(|(key, _)| key.as_str());
    out.push('{');
    for (index, (key, value)) in fields.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_value(out, &Value::String(key.clone()));
        out.push(':');
        write_value(out, value);
    }
    out.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(text: &str) -> [u8; 32] {
        let value: Value = serde_json::from_str(text).unwrap();
        body(value.as_object().unwrap()).sha256
    }

    #[test]
    fn order_and_white_space_do_not_count() {
        assert_eq!(hash(r#"{"a":1,"b":{"c":[1,2],"d":"x"}}"#), hash("{\"b\": {\"d\":\"x\", \"c\":[1, 2]},\n \"a\":1}"));
    }

    #[test]
    fn the_action_id_does_not_count_at_the_top_only() {
        assert_eq!(hash(r#"{"a":1,"action_id":"x"}"#), hash(r#"{"a":1}"#));
        assert_ne!(hash(r#"{"a":{"action_id":"x"}}"#), hash(r#"{"a":{}}"#));
    }

    #[test]
    fn values_count() {
        for (left, right) in
            [(r#"{"a":1}"#, r#"{"a":2}"#), (r#"{"a":"1"}"#, r#"{"a":1}"#), (r#"{"a":[1,2]}"#, r#"{"a":[2,1]}"#)]
        {
            assert_ne!(hash(left), hash(right));
        }
    }

    #[test]
    fn canonical_text_is_as_long_as_it_says() {
        let value: Value = serde_json::from_str(r#"{"b":"ü\n","a":[null,true]}"#).unwrap();
        assert_eq!(size(&value), r#"{"a":[null,true],"b":"ü\n"}"#.len());
    }
}
