//! What stands for records that are out of a model's context: as it is kept in the log, and on its way
//! there.

use schemas::definition::CompactionSettings;
use serde::{Deserialize, Serialize};

use super::budget::Over;
use crate::chat::{Message, ProviderCallRecord, Role};
use crate::compact::{Batch, Made, summary_text};

/// The body of a `summary` record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    #[serde(default, skip_serializing_if = "Extent::is_conversation")]
    pub scope: Extent,
    /// The newest of what it stands for: the offset of a message, or of a turn the number of a move.
    pub upto: u64,
    /// As the model is shown it.
    pub text: String,
    pub batches: Vec<Batch>,
    /// Labels of batches that another stands for now. They are deleted once this record is there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forget: Vec<String>,
}

/// What a summary is of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// Messages, for all turns that the agent begins from now on.
    #[default]
    Conversation,
    /// Replies and results of one turn, for that turn alone: others are never shown them.
    Turn,
}

impl Extent {
    fn is_conversation(&self) -> bool {
        *self == Self::Conversation
    }
}

impl Summary {
    /// After a piece; `before` is how far it went without it.
    pub fn after(scope: Extent, before: u64, made: &Made, settings: &CompactionSettings) -> Self {
        Self {
            scope,
            upto: made.through.unwrap_or(before),
            text: summary_text(&made.batches, settings.clip_first, settings.clip_last),
            batches: made.batches.clone(),
            forget: made.forget.clone(),
        }
    }

    /// That of a turn stands behind the message which the turn answers, where a provider would not
    /// leave a system message.
    pub fn message(&self) -> Message {
        let role = if self.scope == Extent::Turn { Role::User } else { Role::System };
        Message::text(role, self.text.clone())
    }
}

/// The newest summary that the session knows of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// Of its record.
    pub id: String,
    pub upto: u64,
}

/// What one piece of a compaction came to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Compacted {
    /// Tokens of the next request without it, by the estimate.
    pub tokens: u64,
    /// Absent when nothing is left to do, and when it failed.
    pub made: Option<Summarised>,
    /// Why there is no summary.
    pub failure: Option<String>,
    /// It was cut short: there is nothing of it but what it has used.
    pub cut: bool,
    /// Of the model that was asked.
    pub record: Option<ProviderCallRecord>,
    /// No model was asked, or not once more, because a budget is used up.
    pub over: Option<Over>,
}

/// A summary whose newest batch is in the archive.
#[derive(Debug, Clone, PartialEq)]
pub struct Summarised {
    pub summary: Summary,
    /// Id of the record that it goes on from.
    pub base: Option<String>,
    /// Messages that it stands for, and the one before did not.
    pub messages: u64,
}

/// A compaction under way in a turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Compacting {
    /// Tool calls that asked for it; none if the context was over its budget.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<String>,
    #[serde(default)]
    pub batches: u64,
    #[serde(default)]
    pub messages: u64,
    /// Tokens before its first piece.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_before: Option<u64>,
    /// A budget is used up; or the model has failed, and the context does not fit its window.
    #[serde(default)]
    pub without_model: bool,
}
