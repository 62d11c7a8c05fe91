//! What became of a tool call (SPEC W-ERR-03, W-ERR-04). Business errors are told to the model; the
//! platform does not repeat them.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::message::{Part, ToolCall};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ToolErrorCode {
    ExecutionFailed,
    Timeout,
    NotFound,
    PermissionDenied,
    InvalidInput,
    AgentDeclined,
    InternalError,
    /// A program has made all the calls that one execution may make.
    ToolCallLimit,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolError {
    pub code: ToolErrorCode,
    pub message: String,
    /// The same call may work later.
    pub retriable: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    pub tool_call_id: String,
    pub success: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolError>,
}

impl ToolResult {
    pub fn ok(tool_call_id: impl Into<String>, result: Value) -> Self {
        Self { tool_call_id: tool_call_id.into(), success: true, result: Some(result), error: None }
    }

    pub fn failed(tool_call_id: impl Into<String>, error: ToolError) -> Self {
        Self { tool_call_id: tool_call_id.into(), success: false, result: None, error: Some(error) }
    }

    /// The answer to a call whose arguments are no JSON object; `None` for any other.
    pub fn of_invalid(call: &ToolCall) -> Option<Self> {
        call.invalid.as_ref()?;
        let message = format!("the arguments of {} are not a JSON object; call it again with valid JSON", call.name);
        let error = ToolError { code: ToolErrorCode::InvalidInput, message, retriable: false };
        Some(Self::failed(call.id.clone(), error))
    }

    /// As the model is shown it: a text as it is, anything else as JSON.
    pub fn part(&self) -> Part {
        let text = match (&self.error, &self.result) {
            (Some(error), _) => json!({ "error": error }).to_string(),
            (None, Some(Value::String(text))) => text.clone(),
            (None, Some(value)) => value.to_string(),
            (None, None) => String::new(),
        };
        Part::tool_result(self.tool_call_id.clone(), text, !self.success)
    }
}
