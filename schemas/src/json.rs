//! JSON values as they are stored: compact text, checked once, never parsed again on the way.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::limits::JSON_DEPTH_MAX;

/// Well-formed JSON text. Cheap to clone; embeds into JSON without escaping.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(Arc<RawValue>);

impl Json {
    /// Serialises a value.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Self {
        // A type with a failing Serialize or non-string keys is a bug in this program.
        let raw = serde_json::value::to_raw_value(value).expect("value serialises");
        Self(Arc::from(raw))
    }

    /// Takes text that must be JSON.
    pub fn parse(text: String) -> Result<Self, serde_json::Error> {
        RawValue::from_string(text).map(|raw| Self(Arc::from(raw)))
    }

    /// Defensive reading (SPEC Q-LAN-03): plain text that is not JSON becomes a JSON string.
    pub fn lenient(text: &str) -> Self {
        Self::parse(text.to_owned()).unwrap_or_else(|_| Self::of(text))
    }

    pub fn null() -> Self {
        Self::of(&())
    }

    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// The value. Text that is nested deeper than the reader goes comes as a string: it fails what
    /// expects something else, and nothing besides.
    pub fn to_value(&self) -> serde_json::Value {
        serde_json::from_str(self.0.get()).unwrap_or_else(|_| self.0.get().into())
    }

    pub fn to<T: serde::de::DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.0.get())
    }
}

/// Whether arrays and objects are nested deeper than anything from outside may be (`JSON_DEPTH_MAX`).
pub fn is_too_deep(value: &serde_json::Value) -> bool {
    fn fits(value: &serde_json::Value, left: usize) -> bool {
        match value {
            serde_json::Value::Array(items) => left > 0 && items.iter().all(|item| fits(item, left - 1)),
            serde_json::Value::Object(map) => left > 0 && map.values().all(|item| fits(item, left - 1)),
            _ => true,
        }
    }
    !fits(value, JSON_DEPTH_MAX)
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl utoipa::PartialSchema for Json {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        serde_json::Value::schema()
    }
}
impl utoipa::ToSchema for Json {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_kept_as_a_string() {
        assert_eq!(Json::lenient("why did the cat").to_value(), "why did the cat");
        assert_eq!(Json::lenient("{\"a\":1}").to_value()["a"], 1);
    }

    #[test]
    fn depth_is_bounded_and_what_is_deeper_is_a_string() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let value = |depth| serde_json::from_str::<serde_json::Value>(&nested(depth)).unwrap();
        assert!(!is_too_deep(&value(JSON_DEPTH_MAX)) && is_too_deep(&value(JSON_DEPTH_MAX + 1)));
        let object = serde_json::json!({"a": value(JSON_DEPTH_MAX)});
        assert!(is_too_deep(&object), "an object is a level, too");
        // Raw text within raw text has no bound of its own.
        assert_eq!(Json::parse(nested(200)).unwrap().to_value(), nested(200));
    }

    #[test]
    fn embeds_without_escaping() {
        assert_eq!(Json::of(&vec![Json::lenient("{\"a\": 1}")]).as_str(), "[{\"a\": 1}]");
    }
}
