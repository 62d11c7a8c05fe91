//! Looking on, and saying no, from outside.

use async_trait::async_trait;
use domain::context::{Conversation, ConversationTurn, TurnError};

/// Called by the engine at four moments, each waited for. All do nothing unless implemented.
#[async_trait]
pub trait Hooks: Send + Sync {
    /// It is stored, with its first messages.
    async fn on_conversation_created(&self, _conversation: &Conversation) {}

    /// The turn is planned; the provider is not asked yet.
    ///
    /// # Errors
    /// Why it must not be: the turn then fails with this, and no provider is asked.
    async fn before_turn(&self, _turn: &ConversationTurn, _conversation: &Conversation) -> Result<(), TurnError> {
        Ok(())
    }

    /// The turn is stored as succeeded.
    async fn after_turn_success(&self, _turn: &ConversationTurn, _conversation: &Conversation) {}

    /// The turn is stored as failed or cancelled, or could not be stored.
    async fn after_turn_error(&self, _turn: &ConversationTurn, _error: &TurnError, _conversation: &Conversation) {}
}

#[derive(Debug, Clone, Copy, Default)]
pub struct NoHooks;

impl Hooks for NoHooks {}
