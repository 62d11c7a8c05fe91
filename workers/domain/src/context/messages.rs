//! The messages of a request: what the agent has in mind, then the history (SPEC A-LOOP-12).

use super::memory::{MemoryBlock, MemoryTier};
use crate::chat::{Message, Role};

const WORKING_TITLE: &str = "[Working memory]";

/// The history with one message of all working blocks before it, if there are any. System messages
/// that the history begins with stay in front.
///
/// The blocks come as the user's message: instructions are in the system prompt, and what a memory
/// says must not pass for one.
pub fn build_messages(blocks: &[MemoryBlock], history: &[Message]) -> Vec<Message> {
    let working: Vec<String> =
        blocks.iter().filter(|block| block.tier == MemoryTier::Working).map(MemoryBlock::titled).collect();
    if working.is_empty() {
        return history.to_vec();
    }
    let leading = history.iter().take_while(|message| message.role == Role::System).count();
    let context = Message::text(Role::User, format!("{WORKING_TITLE}\n\n{}", working.join("\n\n")));
    let mut messages = Vec::with_capacity(history.len() + 1);
    messages.extend_from_slice(&history[..leading]);
    messages.push(context);
    messages.extend_from_slice(&history[leading..]);
    messages
}
