//! A batch: one summary of a stretch of messages, as it is kept and as it lies in archival memory.

use schemas::id::{ConversationId, MemoryId};
use schemas::memory::MemoryTier;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::action::hash;
use crate::memory::NewMemory;
use crate::time::rfc3339;

/// The type of its memories.
const KIND: &str = "compaction";
/// It stands for much, but it was not chosen to be remembered.
const SIGNIFICANCE: f64 = 0.5;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// Of the memory that holds it; empty in what was written before labels were kept.
    #[serde(default)]
    pub label: String,
    /// 0: made of messages; else one more than the deepest batch that it was made of.
    pub depth: u32,
    /// Times of its first and last message.
    #[serde(rename = "start", with = "crate::context::stamp")]
    pub start_ms: i64,
    #[serde(rename = "end", with = "crate::context::stamp")]
    pub end_ms: i64,
    /// Messages that it stands for.
    pub count: u64,
    pub summary: String,
}

/// `compaction-batch-<subject>-<end time>`; with a number behind it if another batch has that.
pub(super) fn label(subject: &str, end_ms: i64, others: &[Batch]) -> String {
    let plain = format!("compaction-batch-{subject}-{}", rfc3339(end_ms));
    let taken = |text: &str| others.iter().any(|batch| batch.label == text);
    if !taken(&plain) {
        return plain;
    }
    // There are fewer batches than numbers.
    (2u64..).map(|n| format!("{plain}-{n}")).find(|text| !taken(text)).unwrap_or(plain)
}

impl Batch {
    /// `[depth:N|start:…|end:…|count:M]`.
    pub fn header(&self) -> String {
        let (start, end) = (rfc3339(self.start_ms), rfc3339(self.end_ms));
        format!("[depth:{}|start:{start}|end:{end}|count:{}]", self.depth, self.count)
    }

    /// Header and summary.
    pub fn text(&self) -> String {
        format!("{}\n{}", self.header(), self.summary)
    }

    /// As it is archived. The id hangs on what it stands for, so that a repeat writes the same memory,
    /// and a later batch never the one of a batch that was deleted.
    pub(super) fn to_memory(&self, conversation: &ConversationId, of: &str) -> NewMemory {
        let digest = hash::hex(&hash::sha256(&format!("{}\n{}\n{of}", self.label, self.header()))[..16]);
        let metadata: [(&str, Value); 5] = [
            ("conversation_id", json!(conversation)),
            ("depth", json!(self.depth)),
            ("start", json!(rfc3339(self.start_ms))),
            ("end", json!(rfc3339(self.end_ms))),
            ("count", json!(self.count)),
        ];
        NewMemory {
            id: MemoryId::parse(&format!("compaction-{digest}")).expect("hexadecimal digits make an id"),
            label: Some(self.label.clone()),
            tier: MemoryTier::Archival,
            kind: KIND.to_owned(),
            content: self.text(),
            significance: SIGNIFICANCE,
            metadata: metadata.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            embedding: None,
            expect_version: None,
        }
    }
}
