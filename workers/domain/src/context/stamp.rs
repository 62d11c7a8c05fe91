//! Times of the records here: epoch milliseconds in the program, RFC 3339 texts in JSON.

use serde::{Deserialize, Deserializer, Serializer, de::Error};

use crate::time::{parse_rfc3339, rfc3339};

pub fn serialize<S: Serializer>(ms: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&rfc3339(*ms))
}

pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_rfc3339(&text).ok_or_else(|| D::Error::custom(format!("{text:?} is no RFC 3339 time")))
}

/// The same for a time that may be absent.
pub mod optional {
    use super::*;

    pub fn serialize<S: Serializer>(ms: &Option<i64>, serializer: S) -> Result<S::Ok, S::Error> {
        match ms {
            Some(ms) => super::serialize(ms, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        let read = |text: String| {
            parse_rfc3339(&text).ok_or_else(|| D::Error::custom(format!("{text:?} is no RFC 3339 time")))
        };
        text.map(read).transpose()
    }
}
