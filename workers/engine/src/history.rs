//! Which messages go to the provider.

use async_trait::async_trait;
use domain::chat::Message;
use domain::context::{Conversation, ConversationMessage, HistoryLimits, TurnError, build_history};
use schemas::id::TurnId;

/// What a history is built from.
#[derive(Debug, Clone, Copy)]
pub struct HistoryContext<'a> {
    pub conversation: &'a Conversation,
    /// Oldest first.
    pub messages: &'a [ConversationMessage],
    /// The turn that it is for.
    pub next_turn_id: &'a TurnId,
    /// Name of the agent that handles the turn.
    pub agent: &'a str,
}

#[async_trait]
pub trait HistoryBuilder: Send + Sync {
    /// # Errors
    /// The turn then fails with this.
    async fn build_history(&self, context: HistoryContext<'_>) -> Result<Vec<Message>, TurnError>;
}

/// The whole history, or its end within limits.
#[derive(Debug, Clone, Copy, Default)]
pub struct FullHistory {
    pub limits: HistoryLimits,
}

impl FullHistory {
    pub fn limited(limits: HistoryLimits) -> Self {
        Self { limits }
    }
}

#[async_trait]
impl HistoryBuilder for FullHistory {
    async fn build_history(&self, context: HistoryContext<'_>) -> Result<Vec<Message>, TurnError> {
        Ok(build_history(context.messages, &self.limits))
    }
}
