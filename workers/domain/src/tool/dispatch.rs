//! What is dispatched for a call: everything that an executor, or somebody else's worker, needs.

use std::collections::BTreeMap;

use schemas::conversation::{ApprovalRequest, OperationKind};
use schemas::definition::{ActionKind, EffectClass, TargetType};
use schemas::id::{AgentId, ConversationId, DefinitionId, OperationId, SessionId, TurnId};
use schemas::limits::TOOL_MESSAGES_BYTES_MAX;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::toolbox::Toolbox;
use crate::chat::{Message, Role};

/// An operation that has no place yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Dispatch {
    pub kind: OperationKind,
    pub pool: String,
    pub request: ActionRequest,
    pub effect_class: EffectClass,
    pub max_attempts: u32,
    pub backoff_ms: u64,
    pub timeout_ms: u64,
    /// With work of others: how long it may wait for somebody who takes it.
    pub wait_ms: Option<u64>,
    pub is_async: bool,
    pub approval: Option<ApprovalRequest>,
    /// It reads the history: give it as `messages` of its context (SPEC K-17).
    pub wants_messages: bool,
}

/// The request of an operation, as it is stored and sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ActionRequest {
    pub target_type: TargetType,
    pub target_id: DefinitionId,
    pub version: u64,
    pub action_id: DefinitionId,
    pub action_version: u64,
    pub kind: ActionKind,
    pub operation: String,
    #[serde(default)]
    pub config: Map<String, Value>,
    /// Held against what the action answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Map<String, Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_mapping: Option<BTreeMap<String, String>>,
    /// Failures of the infrastructure that are tried again; out of [`schemas::definition::RetryPolicy`].
    #[serde(default)]
    pub retry_on: Vec<String>,
    /// Template of the key that the target knows a repeat by; the operation's id if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    pub input: Value,
    #[serde(default)]
    pub context: ExecutionContext,
}

/// Whose call it is, for templates.
#[derive(Debug, Clone, Copy)]
pub struct Whose<'a> {
    pub operation_id: &'a OperationId,
    pub session_id: &'a SessionId,
    pub conversation_id: &'a ConversationId,
    pub turn_id: &'a TurnId,
    pub tool: &'a str,
}

impl ActionRequest {
    /// What the templates of the action see: `input`, `context`, `messages` and `operation_id`; fields of the
    /// input by their own names, too, where nothing else has that name.
    pub fn seen(&self, whose: Whose<'_>) -> Value {
        let mut seen = match &self.input {
            Value::Object(map) => map.clone(),
            _ => Map::new(),
        };
        seen.insert("input".to_owned(), self.input.clone());
        seen.insert("operation_id".to_owned(), whose.operation_id.as_str().into());
        seen.insert("messages".to_owned(), json!(self.context.messages));
        let place = json!({
            "agent_id": self.context.agent_id,
            "project_ids": self.context.project_ids,
            "session_id": whose.session_id,
            "conversation_id": whose.conversation_id,
            "turn_id": whose.turn_id,
            "tool": whose.tool,
        });
        seen.insert("context".to_owned(), place);
        Value::Object(seen)
    }
}

/// Where a call comes from. None of it is the model's to choose.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ExecutionContext {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub project_ids: Vec<DefinitionId>,
    /// The newest of the history up to the call, if the action reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<Vec<Message>>,
    /// What a program may call, if a program is what is run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toolbox: Option<Toolbox>,
}

/// The newest messages that an operation may carry, oldest first, without the system's.
pub fn history(messages: &[Message]) -> Vec<Message> {
    let mut left = TOOL_MESSAGES_BYTES_MAX;
    let shown = messages.iter().rev().filter(|message| message.role != Role::System).take_while(|message| {
        let bytes = serde_json::to_string(message).map_or(usize::MAX, |text| text.len());
        let fits = bytes <= left;
        left = left.saturating_sub(bytes);
        fits
    });
    let mut shown: Vec<Message> = shown.cloned().collect();
    shown.reverse();
    shown
}

/// Whether the settings of an action ask for the history: by `messages: true`, or by a template that
/// names it. `input.messages` does not: it is a field of the tool's own input.
pub(super) fn wants_messages(config: &Map<String, Value>) -> bool {
    fn names(value: &Value) -> bool {
        match value {
            Value::String(text) if text.contains("{{") => {
                text.match_indices("messages").any(|(at, _)| !text[..at].ends_with("input."))
            }
            Value::Array(items) => items.iter().any(names),
            Value::Object(map) => map.values().any(names),
            _ => false,
        }
    }
    config.get("messages") == Some(&Value::Bool(true)) || config.values().any(names)
}
