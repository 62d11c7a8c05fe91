//! Who the model is: personas, and the prompts of steps that call a model.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::budget::Budgets;
use super::task::ActionKind;
use crate::conversation::Busy;
use crate::id::DefinitionId;

/// Identity, behaviour and tools, shareable and versioned; it holds no state (SPEC W-PER-01).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Persona {
    pub id: DefinitionId,
    pub name: String,
    /// Exactly one of `library_id` and `project_id` owns it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library_id: Option<DefinitionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<DefinitionId>,
    #[serde(flatten)]
    pub body: PersonaBody,
}

/// A persona of one agent alone: it has neither id nor owner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct InlinePersona {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(flatten)]
    pub body: PersonaBody,
}

/// What makes a persona, wherever it is written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PersonaBody {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub system_prompt: String,
    /// Behavioural instructions, after the system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    pub model_profile_id: DefinitionId,
    /// Workflow that assembles the context; the built-in one if absent, as it must be while there are no workflows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_assembly_workflow_id: Option<DefinitionId>,
    /// Workflow that extracts memories; the same holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_extraction_workflow_id: Option<DefinitionId>,
    /// Turns whose whole content is given to the assembly.
    #[serde(default = "recent_turns_limit")]
    pub recent_turns_limit: u32,
    #[serde(default)]
    pub tool_ids: Vec<DefinitionId>,
    #[serde(default)]
    pub constraints: AgentConstraints,
    #[serde(default)]
    pub assembly: AssemblyMode,
    /// Part of the model's window that a request may fill.
    #[serde(default = "context_budget")]
    pub context_budget: f64,
    /// Absent: with the usual settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction: Option<CompactionSettings>,
    /// What becomes of a message for an agent that is at work, unless the message or its session says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<Busy>,
}

/// When the context is assembled (SPEC K-10).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AssemblyMode {
    #[default]
    PerTurn,
    PerCall,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentConstraints {
    /// Model answers with tool calls of one turn, before the agent must respond.
    #[serde(default = "max_moves_per_turn")]
    pub max_moves_per_turn: u32,
    /// Ids of tools that may be called, out of `tool_ids`; all of them if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_tools: Option<Vec<DefinitionId>>,
    /// Kinds of actions that its tools may run; all if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_action_kinds: Option<Vec<ActionKind>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budgets: Option<Budgets>,
}

impl Default for AgentConstraints {
    fn default() -> Self {
        Self {
            max_moves_per_turn: max_moves_per_turn(),
            allowed_tools: None,
            allowed_action_kinds: None,
            budgets: None,
        }
    }
}

/// How old messages become summaries (SPEC 4.8).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CompactionSettings {
    /// `false`: the context is never made shorter.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Messages summarised at a time.
    #[serde(default = "chunk_size")]
    pub chunk_size: u32,
    /// Newest messages that are left as they are.
    #[serde(default = "keep_recent")]
    pub keep_recent: u32,
    #[serde(default = "max_summary_tokens")]
    pub max_summary_tokens: u32,
    /// Summaries shown from the beginning and from the end.
    #[serde(default = "clip")]
    pub clip_first: u32,
    #[serde(default = "clip")]
    pub clip_last: u32,
    /// The model that makes the summaries; absent: the agent's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_profile_id: Option<DefinitionId>,
}

/// A prompt with what it takes and what it makes (SPEC 4.7).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PromptSpec {
    pub id: DefinitionId,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library_id: Option<DefinitionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<DefinitionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Text with places as in `{{input.topic}}`.
    pub template: String,
    /// JSON Schema of what the template needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requires: Option<Map<String, Value>>,
    /// JSON Schema of the answer; absent: plain text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub produces: Option<Map<String, Value>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<PromptExample>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PromptExample {
    pub input: Value,
    pub output: Value,
}

fn recent_turns_limit() -> u32 {
    20
}

fn max_moves_per_turn() -> u32 {
    20
}

fn context_budget() -> f64 {
    0.8
}

fn yes() -> bool {
    true
}

fn chunk_size() -> u32 {
    20
}

fn keep_recent() -> u32 {
    5
}

fn max_summary_tokens() -> u32 {
    1_024
}

fn clip() -> u32 {
    2
}
