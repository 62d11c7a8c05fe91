//! Compaction: old messages of a conversation become summaries (SPEC 4.8). Sans I/O: what is to be
//! asked and what is to be written comes out as data; callers ask their own model and memory.
//!
//! The newest messages stay. The older ones are summarised chunk by chunk, each with the summary
//! before it folded in, so that the last summary tells of all. Each summary becomes a batch in
//! archival memory; when there are many, the older batches become one of greater depth. In the
//! context, one system message that begins with `[Context Summary` stands for all of them.
//!
//! A caller writes [`Compacted::archive`] first, then leaves the messages out of the context, then
//! forgets [`Compacted::forget`]: whatever breaks in between, nothing is lost. If a
//! model fails, the caller drops the [`Compaction`]: the history is as it was.

mod batch;
mod context;
mod prompt;
mod run;
mod split;
#[cfg(test)]
mod tests;

use schemas::definition::CompactionSettings;
use schemas::id::ConversationId;

use crate::chat::{ChatRequest, Message};
use crate::memory::{MemoryKey, NewMemory};
pub use batch::{Batch, batches_filter};
pub use context::is_summary;
pub use prompt::PROMPT;
pub use run::{Blank, Compaction};

/// A message of the history with its time.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub at_ms: i64,
    pub message: Message,
}

/// What is to be compacted.
#[derive(Debug, Clone)]
pub struct Job {
    pub conversation_id: ConversationId,
    /// The whole context but for the system prompt, oldest first. Summaries of earlier compactions
    /// are among it; they are replaced, and not summarised as messages.
    pub history: Vec<Entry>,
    /// What earlier compactions archived, in any order: see [`batches_filter`] and [`Batch::read`].
    pub batches: Vec<Batch>,
    /// Who summarises: the persona's system prompt.
    pub persona: String,
    /// With places `{persona}`, `{existing_summary}` and `{messages}`; [`PROMPT`] if absent.
    pub prompt: Option<String>,
    pub settings: CompactionSettings,
    /// Tokens of a message.
    pub estimate: fn(&Message) -> u64,
}

/// What comes next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Ask a model, and go on with [`Compaction::summary`].
    Ask(Box<Compaction>),
    Done(Box<Compacted>),
}

/// A compaction that came to its end.
#[derive(Debug, Clone, PartialEq)]
pub struct Compacted {
    /// To be written before anything else, in this order.
    pub archive: Vec<NewMemory>,
    /// Positions in the history that are no longer part of the context.
    pub excluded: Vec<usize>,
    /// The context from now on: the summary, then the messages that stay.
    pub context: Vec<Message>,
    /// Batches that others stand for now, to be deleted last.
    pub forget: Vec<MemoryKey>,
    pub statistics: Statistics,
}

/// What `compact_context` answers (SPEC 4.8). All zero but the tokens: there was nothing to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Summaries that were made of messages.
    pub batches_created: u64,
    pub messages_compressed: u64,
    pub tokens_before: u64,
    pub tokens_after: u64,
}

impl Job {
    /// Begins. `Done` at once, with nothing changed, if no message is old enough.
    pub fn start(self) -> Step {
        Compaction::start(self)
    }
}

impl Step {
    /// The request to ask, if there is one.
    pub fn request(&self) -> Option<&ChatRequest> {
        match self {
            Self::Ask(compaction) => Some(compaction.request()),
            Self::Done(_) => None,
        }
    }
}
