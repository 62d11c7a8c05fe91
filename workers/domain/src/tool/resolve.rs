//! A tool with everything that a call of it needs, as it is kept in the assembly record.

use std::collections::BTreeMap;

use schemas::definition::{ActionDef, ActionKind, Chosen, EffectClass, Execution, OnFailure, TargetType, Task, Tool};
use schemas::id::DefinitionId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::map;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResolvedTool {
    pub tool: Tool,
    pub version: u64,
    pub target: ResolvedTarget,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ResolvedTarget {
    Action(Box<ResolvedAction>),
    Agent {
        agent_id: DefinitionId,
        version: u64,
    },
    /// Why there is nothing to run, for the model.
    Missing {
        reason: String,
    },
}

/// One action definition, and the task that it stands for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResolvedAction {
    /// The task; of what is built in, its own name.
    pub target_id: DefinitionId,
    /// Of the task.
    pub version: u64,
    pub action_id: DefinitionId,
    pub action_version: u64,
    pub kind: ActionKind,
    pub operation: String,
    #[serde(default)]
    pub config: Map<String, Value>,
    /// Of the task: held against its input, before `input_mapping`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_schema: Option<Map<String, Value>>,
    /// Of the action: held against what it is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Map<String, Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Map<String, Value>>,
    /// From field of the action to field of the task's input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_mapping: Option<BTreeMap<String, String>>,
    /// From field of the output to field of the action's result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_mapping: Option<BTreeMap<String, String>>,
    pub effect_class: EffectClass,
    pub execution: Execution,
    /// Of the whole task, its waits included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    #[serde(default, skip_serializing_if = "Chosen::is_empty")]
    pub chosen: Chosen,
}

impl ResolvedAction {
    /// The class that somebody gave the action; `None`: it has the default.
    pub fn said_class(&self) -> Option<EffectClass> {
        self.chosen.class(self.effect_class)
    }
}

/// What the registry has under the target of a tool.
#[derive(Debug, Clone, Copy)]
pub enum Target<'d> {
    /// With the action of [`action_of`], if it was found.
    Task {
        task: &'d Task,
        version: u64,
        action: Option<(&'d ActionDef, u64)>,
    },
    Agent {
        version: u64,
    },
    Nothing,
}

/// Which action a task runs, and its version if it is pinned.
///
/// # Errors
/// Why the task cannot be run as one action, in words for the model.
pub fn action_of(task: &Task) -> Result<(DefinitionId, Option<u64>), String> {
    let [step] = task.steps.as_slice() else {
        let what = "tasks of several steps are not run yet, tools run tasks of one step alone; go on without it";
        return Err(format!("the task {} has {} steps; {what}", task.id, task.steps.len()));
    };
    if step.condition.is_some() || step.on_failure != OnFailure::Abort || task.retry.is_some() {
        let what = "conditions, retries of a whole task and steps that may fail are not run yet; go on without it";
        return Err(format!("the task {} cannot be run by a tool yet: {what}", task.id));
    }
    Ok((step.action_def_id.clone(), step.action_def_version))
}

/// Binds a tool to what its target is now.
pub fn resolve(tool: Tool, version: u64, target: Target<'_>) -> ResolvedTool {
    let found = match (tool.target_type, target) {
        (TargetType::Workflow, _) => {
            Err(format!("{} is a workflow, and tools cannot run workflows yet; go on without it", tool.target_id))
        }
        (TargetType::Agent, Target::Agent { version }) => {
            Ok(ResolvedTarget::Agent { agent_id: tool.target_id.clone(), version })
        }
        (TargetType::Task, Target::Task { task, version, action }) => action_target(task, version, action),
        (kind, _) => Err(format!("there is no {} {}; go on without it", word(kind), tool.target_id)),
    };
    let target = found.unwrap_or_else(|reason| ResolvedTarget::Missing { reason });
    ResolvedTool { tool, version, target }
}

pub(super) fn word(kind: TargetType) -> &'static str {
    match kind {
        TargetType::Task => "task",
        TargetType::Workflow => "workflow",
        TargetType::Agent => "agent",
    }
}

fn action_target(task: &Task, version: u64, action: Option<(&ActionDef, u64)>) -> Result<ResolvedTarget, String> {
    let (action_id, pinned) = action_of(task)?;
    let Some((action, action_version)) =
        action.filter(|(action, version)| action.id == action_id && pinned.is_none_or(|pinned| pinned == *version))
    else {
        return Err(format!("the action {action_id} of the task {} does not exist; go on without it", task.id));
    };
    let step = &task.steps[0];
    let simple = |mapping: &Option<BTreeMap<String, String>>, root: &str| {
        mapping.as_ref().map(|mapping| map::of_expressions(mapping, root)).transpose()
    };
    let not_simple = |why| format!("the task {} cannot be run by a tool yet: {why}", task.id);
    Ok(ResolvedTarget::Action(Box::new(ResolvedAction {
        target_id: task.id.clone(),
        version,
        action_id,
        action_version,
        kind: action.kind,
        operation: action.operation.clone(),
        config: action.config.clone(),
        task_schema: task.input_schema.clone(),
        input_schema: action.input_schema.clone(),
        output_schema: task.output_schema.clone().or_else(|| action.output_schema.clone()),
        input_mapping: simple(&step.input_mapping, "input").map_err(not_simple)?,
        output_mapping: simple(&step.output_mapping, "result").map_err(not_simple)?,
        effect_class: action.effect_class,
        execution: action.execution.clone(),
        timeout_ms: task.timeout_ms,
        idempotency_key: action.idempotency_key.clone(),
        chosen: action.chosen,
    })))
}
