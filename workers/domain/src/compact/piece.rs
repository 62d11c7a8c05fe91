//! One piece of a compaction: a chunk of messages, or the older batches, and what becomes of it.

use schemas::limits::COMPACT_SUMMARY_BYTES_MAX;

use super::batch::{Batch, label};
use super::{Blank, Entry, Job, Made, prompt};
use crate::chat::{ChatRequest, Parameters};
use crate::context::estimate_message;

/// Batches beyond those that are shown, before old ones become one.
const BATCHES_BUFFER: usize = 2;

/// What one summary is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece {
    /// The oldest messages, so many.
    Messages(usize),
    /// The oldest batches, so many.
    Batches(usize),
}

impl Job<'_> {
    /// What is to be done next. Each piece leaves less to do, so there is an end.
    pub fn next(&self) -> Option<Piece> {
        let (first, last) = (self.settings.clip_first as usize, self.settings.clip_last as usize);
        if self.batches.len() > first + last + BATCHES_BUFFER {
            return Some(Piece::Batches(self.batches.len() - last));
        }
        (!self.messages.is_empty()).then(|| Piece::Messages(self.chunk()))
    }

    /// As many messages as are summarised at a time and go into a request, and no place in part.
    fn chunk(&self) -> usize {
        let most = (self.settings.chunk_size as usize).max(1);
        let (mut count, mut tokens) = (0, 0);
        for group in self.messages.chunk_by(|a, b| a.key == b.key) {
            tokens += group.iter().map(|entry| estimate_message(&entry.message)).sum::<u64>();
            if count > 0 && (count + group.len() > most || tokens > self.room()) {
                break;
            }
            count += group.len();
        }
        count
    }

    /// Tokens of messages in one request: the rest is for persona, summary and answer.
    fn room(&self) -> u64 {
        self.window_tokens / 2
    }

    /// No answer may take more of a small window, its thoughts included.
    pub fn answer_tokens_max(&self) -> u32 {
        u32::try_from(self.window_tokens / 4).unwrap_or(u32::MAX).max(1)
    }

    /// What to ask the model. It may be another one than the agent's (SPEC A-CMP-06).
    pub fn request(&self, piece: Piece) -> ChatRequest {
        let room_chars = usize::try_from(self.room().saturating_mul(4)).unwrap_or(usize::MAX);
        let (existing, told) = match piece {
            Piece::Messages(count) => {
                let existing = self.batches.last().map_or("", |batch| batch.summary.as_str());
                (existing, prompt::transcript(&self.messages[..count], room_chars))
            }
            // The newest of them already tells of those before it: what is asked for is one telling.
            Piece::Batches(count) => ("", prompt::summaries(&self.batches[..count], room_chars)),
        };
        let parameters = Parameters {
            max_tokens: Some(self.settings.max_summary_tokens.min(self.answer_tokens_max())),
            temperature: Some(0.0),
            ..Parameters::default()
        };
        ChatRequest { parameters, ..prompt::request(self.persona, existing, &told) }
    }

    /// A summary without a model: of everything the beginning and the end, in a quarter of its length and
    /// no longer than a summary, about.
    pub fn extract(&self, piece: Piece) -> String {
        let most = (self.settings.max_summary_tokens as usize).saturating_mul(4);
        match piece {
            Piece::Messages(count) => prompt::extract(&self.messages[..count], most),
            Piece::Batches(count) => prompt::extract_batches(&self.batches[..count], most),
        }
    }

    /// Takes the model's answer for a piece.
    ///
    /// # Errors
    /// There is no text in it.
    pub fn close(&self, piece: Piece, summary: &str) -> Result<Made, Blank> {
        let summary = bounded(summary).ok_or(Blank)?;
        Ok(match piece {
            Piece::Messages(count) => self.with_messages(&self.messages[..count], summary),
            Piece::Batches(count) => self.with_joined(count, summary),
        })
    }

    fn with_messages(&self, taken: &[Entry], summary: String) -> Made {
        let times = || taken.iter().map(|entry| entry.at_ms);
        let (start_ms, end_ms) = (times().min().unwrap_or_default(), times().max().unwrap_or_default());
        let label = label(self.subject, end_ms, self.batches);
        let through = taken.last().map(|entry| entry.key);
        let batch = Batch { label, depth: 0, start_ms, end_ms, count: taken.len() as u64, summary };
        Made {
            archive: batch.to_memory(self.conversation_id, &format!("through {through:?}")),
            batches: self.batches.iter().cloned().chain([batch]).collect(),
            through,
            messages: taken.len() as u64,
            forget: Vec::new(),
        }
    }

    /// Puts one batch in the place of those that it was made of.
    fn with_joined(&self, count: usize, summary: String) -> Made {
        let (joined, others) = self.batches.split_at(count);
        let end_ms = joined.iter().map(|batch| batch.end_ms).max().unwrap_or_default();
        // If one of the joined has this label, its memory gets the new content.
        let label = label(self.subject, end_ms, others);
        let batch = Batch {
            depth: 1 + joined.iter().map(|batch| batch.depth).max().unwrap_or_default(),
            start_ms: joined.iter().map(|batch| batch.start_ms).min().unwrap_or_default(),
            end_ms,
            count: joined.iter().map(|batch| batch.count).sum(),
            summary,
            label,
        };
        let gone = joined.iter().filter(|old| old.label != batch.label && !old.label.is_empty());
        Made {
            archive: batch.to_memory(self.conversation_id, "joined"),
            forget: gone.map(|old| old.label.clone()).collect(),
            batches: [batch].into_iter().chain(others.iter().cloned()).collect(),
            through: None,
            messages: 0,
        }
    }
}

/// Without blanks around it and within the bound. PostgreSQL's texts hold no NUL.
fn bounded(text: &str) -> Option<String> {
    let text = text.trim().replace('\0', "\u{FFFD}");
    let end = text.floor_char_boundary(COMPACT_SUMMARY_BYTES_MAX);
    (!text.is_empty()).then(|| text[..end].to_owned())
}
