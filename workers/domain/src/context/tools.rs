//! Calls of tools that nobody answered.

use std::collections::BTreeSet;

use super::message::ConversationMessage;
use crate::chat::{Part, ToolCall};

/// The calls of the last answer of a model that have no result: its process died in between. No
/// provider takes a history in which a call is left open.
pub fn unanswered_calls(messages: &[ConversationMessage]) -> Vec<ToolCall> {
    let mut answered = BTreeSet::new();
    for message in messages.iter().rev() {
        let parts = message.content.parts();
        let calls: Vec<ToolCall> = parts.iter().filter_map(Part::as_tool_call).cloned().collect();
        if !calls.is_empty() {
            return calls.into_iter().filter(|call| !answered.contains(&call.id)).collect();
        }
        answered.extend(parts.into_iter().filter_map(|part| match part {
            Part::ToolResult { call_id, .. } => Some(call_id),
            _ => None,
        }));
    }
    Vec::new()
}
