//! Tools as the model is shown them.

use std::collections::HashSet;

use schemas::definition::{AgentConstraints, InvocationMode};
use serde_json::{Value, json};

use super::MODE_FIELD;
use super::plan::permitted;
use super::resolve::{ResolvedTarget, ResolvedTool};
use crate::chat::ToolSpec;

/// One entry per name, in the order of the set; the first of two with the same name counts.
pub fn specs(tools: &[ResolvedTool]) -> Vec<ToolSpec> {
    let mut specs: Vec<ToolSpec> = Vec::with_capacity(tools.len());
    for tool in tools {
        if specs.iter().all(|spec| spec.name != tool.tool.name) {
            specs.push(spec(tool));
        }
    }
    specs
}

/// Those that an agent may use. Those of `called` stay in sight: providers refuse a history with calls of tools that
/// are not offered.
pub fn offered(tools: &[ResolvedTool], constraints: &AgentConstraints, called: &HashSet<String>) -> Vec<ToolSpec> {
    // Of two with the same name the first is the one that is called, so it decides.
    let first = |name: &str| tools.iter().find(|tool| tool.tool.name == name);
    let may_use = |name: &str| first(name).is_some_and(|tool| permitted(tool, constraints).is_ok());
    let mut offered = specs(tools);
    offered.retain(|spec| called.contains(&spec.name) || may_use(&spec.name));
    offered
}

fn spec(tool: &ResolvedTool) -> ToolSpec {
    let mut schema = tool.tool.input_schema.clone();
    if matches!(tool.target, ResolvedTarget::Agent { .. }) && !defines_mode(tool) {
        let usual = match tool.tool.invocation_mode.unwrap_or(InvocationMode::Delegate) {
            InvocationMode::Delegate => "delegate",
            InvocationMode::LoopIn => "loop_in",
        };
        let what = format!(
            "Optional. delegate: it works alone on this input and answers you. loop_in: it joins the conversation. \
             Usually {usual}."
        );
        let properties = schema.entry("properties").or_insert_with(|| json!({}));
        if let Value::Object(properties) = properties {
            let mode = json!({"type": "string", "enum": ["delegate", "loop_in"], "description": what});
            properties.insert(MODE_FIELD.to_owned(), mode);
        }
    }
    ToolSpec {
        name: tool.tool.name.clone(),
        description: tool.tool.description.clone(),
        input_schema: Value::Object(schema),
    }
}

/// Whether the schema has a use of its own for the reserved field.
pub(super) fn defines_mode(tool: &ResolvedTool) -> bool {
    let properties = tool.tool.input_schema.get("properties").and_then(Value::as_object);
    properties.is_some_and(|properties| properties.contains_key(MODE_FIELD))
}
