//! Work without a model in the lead: tasks of ordered steps, and the actions they run (SPEC 4.3).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::tool::{Chosen, EffectClass};
use crate::id::DefinitionId;

/// Ordered steps over a context in memory; a retry starts at the first step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Task {
    pub id: DefinitionId,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library_id: Option<DefinitionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<DefinitionId>,
    /// Absent: anything is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Map<String, Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Map<String, Value>>,
    pub steps: Vec<TaskStep>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<TaskRetry>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskStep {
    /// Name of the step within the task.
    #[serde(rename = "ref")]
    pub reference: String,
    pub action_def_id: DefinitionId,
    /// The newest if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_def_version: Option<u64>,
    /// From field of the action's input to expression over `input`, `state` and `output`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_mapping: Option<BTreeMap<String, String>>,
    /// From place in the context to expression, which sees the action's `result` too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_mapping: Option<BTreeMap<String, String>>,
    #[serde(default)]
    pub on_failure: OnFailure,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<StepCondition>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    #[default]
    Abort,
    /// Asks for the retry of the task.
    Retry,
    /// The error is noted under `state._errors`.
    Continue,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StepCondition {
    #[serde(rename = "if")]
    pub expression: String,
    #[serde(default = "go_on")]
    pub then: StepOutcome,
    #[serde(default = "skip", rename = "else")]
    pub otherwise: StepOutcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepOutcome {
    Continue,
    Skip,
    Succeed,
    Fail,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskRetry {
    /// All attempts, the first one included.
    pub max_attempts: u32,
    #[serde(default)]
    pub backoff: BackoffShape,
    #[serde(default)]
    pub initial_delay_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_delay_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BackoffShape {
    #[default]
    None,
    Linear,
    Exponential,
}

/// One operation, with everything but its input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ActionDef {
    pub id: DefinitionId,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library_id: Option<DefinitionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<DefinitionId>,
    pub kind: ActionKind,
    /// One of the operations of the kind.
    pub operation: String,
    /// Settings of the operation: what they are depends on the kind. Of `llm`, `native` is a whole request in a
    /// provider's own shape, `{provider, body}` (SPEC K-31).
    #[serde(default)]
    pub config: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Map<String, Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Map<String, Value>>,
    /// As of a tool. Of an `http` action whose method is GET it is `pure` if it is not given.
    #[serde(default)]
    pub effect_class: EffectClass,
    #[serde(default)]
    pub execution: Execution,
    /// Template of the key under which a target recognises a repeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// Kept with the content; no client sends or sees it.
    #[serde(default, skip_serializing_if = "Chosen::is_empty")]
    #[schema(ignore, value_type = bool)]
    pub chosen: Chosen,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActionKind {
    Llm,
    Memory,
    Context,
    Mock,
    Http,
    Shell,
    Repo,
    Artifact,
    Human,
    Metric,
    Vector,
    Mcp,
    /// Somebody else's workers run it: those of a pool.
    External,
    /// A program in a sandbox.
    Code,
}

impl ActionKind {
    pub const ALL: [Self; 14] = [
        Self::Llm,
        Self::Memory,
        Self::Context,
        Self::Mock,
        Self::Http,
        Self::Shell,
        Self::Repo,
        Self::Artifact,
        Self::Human,
        Self::Metric,
        Self::Vector,
        Self::Mcp,
        Self::External,
        Self::Code,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Llm => "llm",
            Self::Memory => "memory",
            Self::Context => "context",
            Self::Mock => "mock",
            Self::Http => "http",
            Self::Shell => "shell",
            Self::Repo => "repo",
            Self::Artifact => "artifact",
            Self::Human => "human",
            Self::Metric => "metric",
            Self::Vector => "vector",
            Self::Mcp => "mcp",
            Self::External => "external",
            Self::Code => "code",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// What a kind can do (SPEC 4.3).
    pub fn operations(self) -> &'static [&'static str] {
        match self {
            Self::Llm => &["generate", "embed"],
            Self::Memory | Self::Artifact => &["write", "read", "search", "list", "delete"],
            Self::Context => &["transform", "validate"],
            Self::Mock => &["return"],
            Self::Http => &["request"],
            Self::Shell => &["exec"],
            Self::Repo => &["tree", "read", "write", "search", "diff"],
            Self::Human => &["input", "approve", "review"],
            Self::Metric => &["record"],
            Self::Vector => &["search"],
            Self::Mcp => &["invoke"],
            Self::External => &["run"],
            Self::Code => &["execute"],
        }
    }
}

/// How long an action may take, and which failures of the infrastructure are tried again. Tasks do
/// not see these tries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Execution {
    #[serde(default = "timeout_ms")]
    pub timeout_ms: u64,
    #[serde(default)]
    pub retry_policy: RetryPolicy,
}

impl Execution {
    /// The time that somebody gave it; `None`: it has the default. Nothing tells that from the same time written down.
    pub fn said_timeout_ms(&self) -> Option<u64> {
        (self.timeout_ms != timeout_ms()).then_some(self.timeout_ms)
    }
}

impl Default for Execution {
    fn default() -> Self {
        Self { timeout_ms: timeout_ms(), retry_policy: RetryPolicy::default() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryPolicy {
    /// 1: no retry.
    #[serde(default = "one")]
    pub max_attempts: u32,
    #[serde(default = "backoff_ms")]
    pub backoff_ms: u64,
    /// Out of `network`, `timeout`, `rate_limit`, `server_error`.
    #[serde(default = "retryable_errors")]
    pub retryable_errors: Vec<String>,
}

impl RetryPolicy {
    /// Failures of the infrastructure; nothing else is ever tried again.
    pub const ERRORS: [&'static str; 4] = ["network", "timeout", "rate_limit", "server_error"];
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { max_attempts: one(), backoff_ms: backoff_ms(), retryable_errors: retryable_errors() }
    }
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

fn retryable_errors() -> Vec<String> {
    RetryPolicy::ERRORS.map(str::to_owned).to_vec()
}

fn go_on() -> StepOutcome {
    StepOutcome::Continue
}

fn skip() -> StepOutcome {
    StepOutcome::Skip
}
