//! Where the library keeps its conversations. A fleet's own are behind [`super::Conversations`].

use async_trait::async_trait;
use schemas::id::{ConversationId, TurnId};

use crate::context::{Conversation, ConversationMessage, ConversationTurn};
use crate::failure::Failure;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    #[error("there is no conversation {0}")]
    NoConversation(ConversationId),
    #[error("there is no turn {0}")]
    NoTurn(TurnId),
    /// An id is taken. Nothing was written.
    #[error("there is a {what} {id} already; use another id")]
    Exists { what: &'static str, id: String },
    /// What has ended does not change any more. Nothing was written.
    #[error("turn {0} has ended; it does not change any more")]
    TurnEnded(TurnId),
    /// Nothing was written.
    #[error("the store is full: {0}")]
    Full(String),
    #[error(transparent)]
    Failed(#[from] Failure),
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// By time.
    #[default]
    OldestFirst,
    NewestFirst,
}

/// How many, and from which end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Page {
    /// At most so many, counted from where the order begins; without one, all.
    pub limit: Option<usize>,
    pub order: Order,
}

impl Page {
    pub fn all() -> Self {
        Self::default()
    }

    pub fn oldest(limit: usize) -> Self {
        Self { limit: Some(limit), order: Order::OldestFirst }
    }

    pub fn newest(limit: usize) -> Self {
        Self { limit: Some(limit), order: Order::NewestFirst }
    }
}

/// Keeps conversations, their messages and their turns. `testkit::contract::engine_store` is the
/// suite that every implementation passes.
///
/// A call is done when it returns, and whole or not at all. Messages and turns are in the order of
/// their times; those of one time in the order in which they came.
#[async_trait]
pub trait ConversationStore: Send + Sync {
    /// # Errors
    /// `Exists`.
    async fn create_conversation(&self, conversation: &Conversation) -> Result<(), StoreError>;

    async fn get_conversation(&self, id: &ConversationId) -> Result<Option<Conversation>, StoreError>;

    /// Replaces all but the id.
    ///
    /// # Errors
    /// `NoConversation`.
    async fn update_conversation(&self, conversation: &Conversation) -> Result<(), StoreError>;

    /// Adds messages of this conversation, all of them or none. A message is never changed.
    ///
    /// # Errors
    /// `NoConversation`; `Exists` when the id of one is taken, by whichever conversation.
    async fn append_messages(
        &self,
        conversation_id: &ConversationId,
        messages: &[ConversationMessage],
    ) -> Result<(), StoreError>;

    /// None of a conversation that there is not.
    async fn get_messages(
        &self,
        conversation_id: &ConversationId,
        page: Page,
    ) -> Result<Vec<ConversationMessage>, StoreError>;

    /// # Errors
    /// `NoConversation`; `Exists` when the id is taken, by whichever conversation.
    async fn create_turn(&self, turn: &ConversationTurn) -> Result<(), StoreError>;

    /// Replaces all but the ids. Of writers that end one turn the first wins.
    ///
    /// # Errors
    /// `NoTurn`; `TurnEnded` unless the turn is stored just so.
    async fn update_turn(&self, turn: &ConversationTurn) -> Result<(), StoreError>;

    /// `None` also when the turn is of another conversation.
    async fn get_turn(
        &self,
        conversation_id: &ConversationId,
        turn_id: &TurnId,
    ) -> Result<Option<ConversationTurn>, StoreError>;

    /// None of a conversation that there is not.
    async fn list_turns(
        &self,
        conversation_id: &ConversationId,
        page: Page,
    ) -> Result<Vec<ConversationTurn>, StoreError>;
}
