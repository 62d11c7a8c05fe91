//! StepFrame-v0 (frozen): what a moniker is given for one step, and what it answers.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::limits::TOKEN_BYTES_MAX;

/// A moniker's own cursor, as in `4.2` or `review/1`. The runner keeps it verbatim.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct StepToken(Arc<str>);

impl StepToken {
    /// The token of a session's first step.
    pub fn start() -> Self {
        Self("start".into())
    }

    /// Any non-empty text without control characters, at most [`TOKEN_BYTES_MAX`] bytes.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("a step token must not be empty".into());
        }
        if text.len() > TOKEN_BYTES_MAX {
            return Err(format!("a step token has at most {TOKEN_BYTES_MAX} bytes, not {}", text.len()));
        }
        if text.chars().any(char::is_control) {
            return Err("a step token must not contain control characters".into());
        }
        Ok(Self(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StepToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for StepToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &self.0)
    }
}

impl<'de> Deserialize<'de> for StepToken {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

impl utoipa::PartialSchema for StepToken {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        String::schema()
    }
}
impl ToSchema for StepToken {}

/// Input of one step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FrameIn {
    pub step: StepToken,
    pub state: Value,
    /// Present in exactly one step per interrupt (SPEC K-21).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guidance: Option<Value>,
}

/// Output of one step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FrameOut {
    pub step: StepToken,
    pub next_step: StepToken,
    pub state: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    #[serde(default)]
    pub done: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
}
