//! What a model is shown of a conversation, and conversations themselves as values (SPEC 1.12 to
//! 1.17, 1.24): messages, turns, history, prompts, budgets, summaries. Nothing here reads or writes.
//!
//! The library in `engine` and the loop of a session build their requests from the same functions,
//! so that an agent sees the same whichever of them runs it.

mod budget;
mod content;
mod conversation;
mod estimate;
mod history;
mod memory;
mod message;
mod messages;
mod prompt;
pub(crate) mod stamp;
mod status;
#[cfg(test)]
mod tests;
mod tools;
mod turn;

pub use budget::{ContextBudget, should_compress};
pub use content::Content;
pub use conversation::Conversation;
pub use estimate::{
    IMAGE_TOKENS, estimate_chars, estimate_message, estimate_messages, estimate_request, estimate_tokens,
};
pub use history::{HistoryLimits, build_history, not_summarised, trigger_of, turn_inputs};
pub use memory::{MemoryBlock, MemoryTier};
pub use message::{ConversationMessage, MessageKind, MessageRole, NewMessage};
pub use messages::build_messages;
pub use prompt::build_system_prompt;
pub use status::{StoredTurn, StoredTurnStatus, TurnPhase, TurnStatus, turn_status};
pub use tools::unanswered_calls;
pub use turn::{ConversationTurn, TurnError};
