//! Which messages stay, and which are summarised.

use schemas::limits::COMPACT_MESSAGES_MAX;

use super::Entry;
use super::context::is_summary;
use crate::chat::{Message, Part, Role};

/// Positions in a history.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Split {
    /// Summaries of earlier compactions.
    pub summaries: Vec<usize>,
    pub old: Vec<usize>,
    pub kept: Vec<usize>,
}

/// The last `keep_recent` messages stay, and more if they would begin with the result of a tool whose
/// call is older: no provider takes a result without its call.
pub fn split(history: &[Entry], keep_recent: usize) -> Split {
    let (summaries, messages): (Vec<usize>, Vec<usize>) =
        (0..history.len()).partition(|at| is_summary(&history[*at].message));
    let mut cut = messages.len().saturating_sub(keep_recent).min(COMPACT_MESSAGES_MAX);
    while cut > 0 && messages.get(cut).is_some_and(|at| answers_a_call(&history[*at].message)) {
        cut -= 1;
    }
    let (old, kept) = messages.split_at(cut);
    Split { summaries, old: old.to_vec(), kept: kept.to_vec() }
}

fn answers_a_call(message: &Message) -> bool {
    message.role == Role::Tool || message.content.iter().any(|part| matches!(part, Part::ToolResult { .. }))
}
