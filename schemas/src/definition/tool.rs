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
    /// `at_most_once` if neither the tool nor its action says what it is. What is said counts, and of two sayings the
    /// careful one; an agent that is called has none.
    #[serde(default)]
    pub effect_class: EffectClass,
    /// Present: a person says yes before it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requires_approval: Option<Approval>,
    /// Kept with the content; no client sends or sees it.
    #[serde(default, skip_serializing_if = "Chosen::is_empty")]
    #[schema(ignore, value_type = bool)]
    pub chosen: Chosen,
}

impl Tool {
    /// The class that somebody gave it; `None`: it has the default.
    pub fn said_class(&self) -> Option<EffectClass> {
        self.chosen.class(self.effect_class)
    }

    /// The time that somebody gave it; `None`: it has the default.
    pub fn said_timeout_ms(&self) -> Option<u64> {
        let ms = self.retry.timeout_ms;
        (self.chosen.timeout_ms || ms != timeout_ms()).then_some(ms)
    }
}

/// Defaults that somebody wrote down. A content has its defaults filled in, and with them the hash that it had before
/// this was noted; so only this tells a default from the same value as its author's word, where that differs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chosen {
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub effect_class: bool,
    /// That of `retry`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timeout_ms: bool,
}

impl Chosen {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// A class, if somebody gave it.
    pub fn class(self, class: EffectClass) -> Option<EffectClass> {
        (self.effect_class || class != EffectClass::default()).then_some(class)
    }
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
    /// 60000 if not given; of an agent that is called, a day: it may wait for people.
    #[serde(default = "timeout_ms")]
    pub timeout_ms: u64,
}

impl Default for ToolRetry {
    fn default() -> Self {
        Self { max_attempts: one(), backoff_ms: backoff_ms(), timeout_ms: timeout_ms() }
    }
}

/// What may be done after a crash in the middle of it (DESIGN 5), the most careful last. That is the default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
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
