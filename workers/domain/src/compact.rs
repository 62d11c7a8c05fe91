//! Compaction: old messages become summaries (SPEC 4.8). Sans I/O: what is to be asked and what is to
//! be written comes out as data; callers ask their own model and write to their own memory.
//!
//! The newest messages stay ([`old`]). The others are taken piece by piece ([`Job::next`]): a chunk of
//! messages becomes a [`Batch`], with the summary before it folded in; once there are more batches
//! than are shown and a few, the older ones become one of greater depth. In the context,
//! [`summary_text`] stands for all of them.
//!
//! One piece is one question to a model, and whole in itself. A caller writes [`Made::archive`] first,
//! then leaves the messages out of the context, then forgets [`Made::forget`]: whatever breaks in
//! between, nothing is lost (invariant C1). If the model fails, the caller drops the piece, and all is
//! as it was; or it takes [`Job::extract`] in the place of a summary.

mod batch;
mod piece;
mod prompt;
mod shown;
mod split;
#[cfg(test)]
mod tests;

use schemas::definition::CompactionSettings;
use schemas::id::ConversationId;

use crate::chat::Message;
use crate::memory::NewMemory;
pub use batch::Batch;
pub use piece::Piece;
pub(crate) use prompt::shortened;
pub use prompt::{PROMPT, SYSTEM};
pub use shown::summary_text;
pub use split::old;

/// A message of the history with its time.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its place, which never goes down. Messages of one place are never parted: a call of a tool and
    /// its result, say.
    pub key: u64,
    pub at_ms: i64,
    pub message: Message,
}

/// What is to be compacted.
#[derive(Debug, Clone, Copy)]
pub struct Job<'j> {
    pub conversation_id: &'j ConversationId,
    /// Whose messages they are, for the labels: the conversation, with the session if it is not the agent's first
    /// there, or a turn of it.
    pub subject: &'j str,
    /// Oldest first, without those that stay ([`old`]). No batch stands for any of them.
    pub messages: &'j [Entry],
    /// What was made of older ones, oldest first.
    pub batches: &'j [Batch],
    /// Who summarises: the persona's system prompt.
    pub persona: &'j str,
    pub settings: &'j CompactionSettings,
    /// The window of the model that summarises, tokens. About half of it is given to messages.
    pub window_tokens: u64,
}

/// A piece that came to its end.
#[derive(Debug, Clone, PartialEq)]
pub struct Made {
    /// To be written before anything else. A repeat writes the same memory.
    pub archive: NewMemory,
    /// All batches from now on, oldest first.
    pub batches: Vec<Batch>,
    /// The place of the newest message that they stand for; absent if no messages were taken.
    pub through: Option<u64>,
    /// Messages that were taken.
    pub messages: u64,
    /// Labels of batches that another stands for now: to be deleted last, if ever.
    pub forget: Vec<String>,
}

/// The model answered with nothing: there is no summary, and all is as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the model's summary is empty")]
pub struct Blank;

/// The settings of a persona that says nothing of compaction.
pub fn defaults() -> CompactionSettings {
    serde_json::from_str("{}").expect("all settings have defaults")
}
