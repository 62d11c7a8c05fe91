//! Which messages stay, and which are old.

use schemas::limits::COMPACT_MESSAGES_MAX;

use super::Entry;
use crate::chat::{Message, Part, Role};

/// How many of the first messages are old: all but the newest `keep_recent`, and fewer so that what
/// stays begins well. It begins with a message of a user, so that a question is not parted from its
/// answer. In one long chain of calls there is none; then a result at least stays with its call,
/// because no provider takes one without the other.
pub fn old(messages: &[Entry], keep_recent: usize) -> usize {
    let wanted = messages.len().saturating_sub(keep_recent).min(COMPACT_MESSAGES_MAX);
    if wanted == messages.len() {
        return wanted;
    }
    let may_begin = |at: &usize| messages[*at].key != messages[*at - 1].key && !answers_a_call(&messages[*at].message);
    let is_question = |at: &usize| may_begin(at) && messages[*at].message.role == Role::User;
    // A question alone would be no gain.
    (1..=wanted).rev().find(is_question).or_else(|| (2..=wanted).rev().find(may_begin)).unwrap_or(0)
}

fn answers_a_call(message: &Message) -> bool {
    message.role == Role::Tool || message.content.iter().any(|part| matches!(part, Part::ToolResult { .. }))
}
