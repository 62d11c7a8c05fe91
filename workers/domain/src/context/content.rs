//! What a message says: a text, parts, or any JSON of a higher layer (SPEC C-MSG-04, C-ENG-08).

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::chat::Part;

/// Reads and writes as the bare JSON value, so whatever was stored comes back as it was.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    Text(String),
    Parts(Vec<Part>),
    /// Anything else. Made by [`Content::from`], which knows texts and parts when it sees them.
    Other(Value),
}

impl Content {
    /// As a model is shown it. JSON of no shape known here is shown as its text.
    pub fn parts(&self) -> Vec<Part> {
        match self {
            Self::Text(text) => vec![Part::text(text)],
            Self::Parts(parts) => parts.clone(),
            // Short forms, and fields that only a higher layer knows, are read as parts here.
            Self::Other(value) => match Vec::<Part>::deserialize(value) {
                Ok(parts) if !parts.is_empty() => parts,
                _ => vec![Part::text(value.to_string())],
            },
        }
    }

    /// Its texts, one after the other; empty when it has none.
    pub fn text(&self) -> String {
        self.parts().iter().filter_map(Part::as_text).collect()
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<Part>> for Content {
    fn from(parts: Vec<Part>) -> Self {
        Self::Parts(parts)
    }
}

impl From<Value> for Content {
    fn from(value: Value) -> Self {
        let value = match value {
            Value::String(text) => return Self::Text(text),
            other => other,
        };
        // Parts only if nothing is lost by reading it so.
        match Vec::<Part>::deserialize(&value) {
            Ok(parts) if !parts.is_empty() && serde_json::to_value(&parts).is_ok_and(|again| again == value) => {
                Self::Parts(parts)
            }
            _ => Self::Other(value),
        }
    }
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Parts(parts) => parts.serialize(serializer),
            Self::Other(value) => value.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}
