//! Tools as the model is shown them.

use schemas::definition::InvocationMode;
use serde_json::{Value, json};

use super::MODE_FIELD;
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
