//! What can go wrong, and what is in the store then.

use domain::context::ConversationTurn;
use domain::ports::library::StoreError;
use schemas::id::{ConversationId, TurnId};

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EngineError {
    /// Nothing was written.
    #[error("there is no conversation {0}; create it first")]
    NoConversation(ConversationId),
    /// Nothing was written.
    #[error("there is no turn {turn} in conversation {conversation}")]
    NoTurn { conversation: ConversationId, turn: TurnId },
    /// What was asked for cannot be done. Nothing was written.
    #[error("{0}")]
    Invalid(String),
    /// The store failed before a turn was begun, or outside of one.
    #[error(transparent)]
    Store(StoreError),
    /// The turn is stored as failed; it says why.
    #[error("turn {} failed: {}", .0.id, reason(.0))]
    TurnFailed(Box<ConversationTurn>),
    /// The turn is stored as cancelled.
    #[error("turn {} was cancelled", .0.id)]
    TurnCancelled(Box<ConversationTurn>),
    /// The end of the turn could not be stored: the store may still have it as running. The turn here
    /// is as it should be there.
    #[error("the end of turn {} could not be stored: {error}", .turn.id)]
    TurnNotStored { turn: Box<ConversationTurn>, error: StoreError },
}

impl EngineError {
    /// The turn that ended badly, if there was one.
    pub fn turn(&self) -> Option<&ConversationTurn> {
        match self {
            Self::TurnFailed(turn) | Self::TurnCancelled(turn) | Self::TurnNotStored { turn, .. } => Some(turn),
            _ => None,
        }
    }
}

impl From<StoreError> for EngineError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NoConversation(id) => Self::NoConversation(id),
            other => Self::Store(other),
        }
    }
}

fn reason(turn: &ConversationTurn) -> &str {
    turn.error.as_ref().map_or("for no known reason", |error| &error.message)
}
