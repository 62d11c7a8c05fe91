//! Rounds of tools: who carries out a call, and what is stored of it.

use domain::chat::{CallContext, Message, Part, Role, ToolCall, ToolError, ToolErrorCode, ToolResult};
use domain::context::{ConversationTurn, MessageRole, NewMessage};
use schemas::limits::TOOL_CALLS_MAX;
use serde_json::json;

use super::Agent;
use crate::error::EngineError;
use crate::provider::ProviderChatResult;

/// The tool with which a model asks for a summary of what is old.
pub const COMPACT_CONTEXT: &str = "compact_context";
/// Stored and returned when the model ends without a word.
pub const NO_RESPONSE: &str = "(no response)";

impl Agent {
    /// Carries out what the turn calls for. `false` when the turn is the answer.
    pub(super) async fn goes_on(&self, turn: &ConversationTurn, must_answer: bool) -> Result<bool, EngineError> {
        let calls = calls_of(turn);
        let is_paused = turn.provider_calls.iter().any(|call| ProviderChatResult::is_paused(&call.response_metadata));
        if calls.is_empty() {
            return Ok(is_paused && !must_answer);
        }
        let context = CallContext {
            conversation_id: self.conversation_id.to_string(),
            turn_id: turn.id.to_string(),
            agent: turn.agent.clone(),
            ..CallContext::default()
        };
        let mut results = Vec::with_capacity(calls.len());
        // One after the other and in their order: a later one may count on what an earlier one did.
        for (n, call) in calls.iter().enumerate() {
            results.push(match (must_answer, n < TOOL_CALLS_MAX) {
                (true, _) => refused(call, "the limit of tool rounds is reached; answer without tools"),
                (false, false) => refused(call, "too many calls at once; call it again by itself"),
                (false, true) => self.dispatch(call, &context).await?,
            });
        }
        self.store_results(results).await?;
        Ok(!must_answer)
    }

    async fn dispatch(&self, call: &ToolCall, context: &CallContext) -> Result<ToolResult, EngineError> {
        if let Some(invalid) = ToolResult::of_invalid(call) {
            return Ok(invalid);
        }
        if call.name == COMPACT_CONTEXT {
            return self.compact_for(call).await;
        }
        let known = self.view.tools().iter().any(|spec| spec.name == call.name);
        Ok(match self.view.toolbox().filter(|_| known) {
            Some(tools) => {
                // The result must fit its call, or the provider refuses the history.
                let result = tools.call(call, context).await;
                ToolResult { tool_call_id: call.id.clone(), ..result }
            }
            None => {
                let message = format!("there is no tool {}", call.name);
                failed(call, ToolErrorCode::NotFound, &message)
            }
        })
    }

    async fn compact_for(&self, call: &ToolCall) -> Result<ToolResult, EngineError> {
        if self.compactor.is_none() {
            return Ok(failed(call, ToolErrorCode::NotFound, "compaction is not configured"));
        }
        let told = match self.compact().await? {
            Some(done) => json!({
                "messages_compressed": done.messages_compressed,
                "batches_created": done.batches_created,
                "tokens_before": done.tokens_before,
                "tokens_after": done.tokens_after,
            }),
            None => json!({"messages_compressed": 0}),
        };
        Ok(ToolResult::ok(call.id.clone(), told))
    }

    pub(super) async fn store_results(&self, results: Vec<ToolResult>) -> Result<(), EngineError> {
        let message = |result: ToolResult| NewMessage::from(Message::new(Role::Tool, vec![result.part()]));
        let messages = results.into_iter().map(message).collect();
        self.engine.append_messages(&self.conversation_id, messages).await.map(|_| ())
    }
}

fn calls_of(turn: &ConversationTurn) -> Vec<ToolCall> {
    let said = turn.output_messages.iter().filter(|message| message.role == MessageRole::Assistant);
    let parts: Vec<Part> = said.flat_map(|message| message.content.parts()).collect();
    parts.iter().filter_map(Part::as_tool_call).cloned().collect()
}

fn failed(call: &ToolCall, code: ToolErrorCode, message: &str) -> ToolResult {
    ToolResult::failed(call.id.clone(), ToolError { code, message: message.to_owned(), retriable: false })
}

fn refused(call: &ToolCall, message: &str) -> ToolResult {
    failed(call, ToolErrorCode::PermissionDenied, message)
}

/// The result of a call that nobody knows the result of.
pub(super) fn interrupted(call: &ToolCall) -> ToolResult {
    let message = "the process ended before the result was stored: it may or may not have happened; look before \
                   you call it again";
    failed(call, ToolErrorCode::ExecutionFailed, message)
}
