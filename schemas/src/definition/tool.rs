//! What the model sees of tasks, workflows and other agents.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::id::DefinitionId;

/// An interface for the model, bound to what it runs (SPEC W-TOOL-02).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    pub id: DefinitionId,
    /// What the model calls it: 1 to 64 letters, digits, `_` or `-`.
    pub name: String,
    /// When to use it, in words for the model.
    pub description: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library_id: Option<DefinitionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<DefinitionId>,
    /// JSON Schema of what the model gives; its type is `object`.
    pub input_schema: Map<String, Value>,
    pub target_type: TargetType,
    pub target_id: DefinitionId,
    /// Go on at once; the result comes later.
    #[serde(default, rename = "async")]
    pub is_async: bool,
    /// For agents only; `delegate` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invocation_mode: Option<InvocationMode>,
    /// From field of the target to field of the input. Absent: the input passes as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_mapping: Option<BTreeMap<String, String>>,
    #[serde(default)]
    pub retry: ToolRetry,
    #[serde(default)]
    pub effect_class: EffectClass,
    /// Present: a person says yes before it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requires_approval: Option<Approval>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TargetType {
    Task,
    Workflow,
    Agent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum InvocationMode {
    /// It works alone and answers the caller.
    Delegate,
    /// It joins the conversation.
    LoopIn,
}

/// For failures of the infrastructure only (SPEC W-TOOL-03).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolRetry {
    /// 1: no retry.
    #[serde(default = "one")]
    pub max_attempts: u32,
    #[serde(default = "backoff_ms")]
    pub backoff_ms: u64,
    #[serde(default = "timeout_ms")]
    pub timeout_ms: u64,
}

impl Default for ToolRetry {
    fn default() -> Self {
        Self { max_attempts: one(), backoff_ms: backoff_ms(), timeout_ms: timeout_ms() }
    }
}

/// What may be done after a crash in the middle of it (DESIGN 5). The default is the careful one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EffectClass {
    /// No effect at all: repeated at will.
    Pure,
    /// Repeated under the same key.
    Idempotent,
    /// The target can be asked whether it happened.
    Probeable,
    /// Never repeated blindly; surfaces as in doubt.
    #[default]
    AtMostOnce,
}

/// The gate before a tool runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// Seconds that a person has to answer.
    #[serde(default = "expires_s")]
    pub expires_s: u64,
    /// What counts when nobody answered.
    #[serde(default)]
    pub default: ApprovalDefault,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalDefault {
    Approve,
    #[default]
    Deny,
}

fn one() -> u32 {
    1
}

fn backoff_ms() -> u64 {
    1_000
}

fn timeout_ms() -> u64 {
    60_000
}

fn expires_s() -> u64 {
    3_600
}
