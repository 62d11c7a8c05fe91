//! A batch: one summary of a stretch of messages, as it lies in archival memory.

use schemas::id::{ConversationId, MemoryId};
use schemas::memory::{Memory, MemoryTier};
use serde_json::{Map, Value, json};

use crate::action::hash;
use crate::memory::{MemoryFilter, NewMemory};
use crate::time::{parse_rfc3339, rfc3339};

/// The type of its memories.
const KIND: &str = "compaction";
const CONVERSATION: &str = "conversation_id";
/// It stands for much, but it was not chosen to be remembered.
const SIGNIFICANCE: f64 = 0.5;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// Of the memory that holds it.
    pub label: String,
    pub summary: String,
    /// 0: made of messages; else one more than the deepest batch that it was made of.
    pub depth: u32,
    /// Times of its first and last message.
    pub start_ms: i64,
    pub end_ms: i64,
    /// Messages that it stands for.
    pub count: u64,
}

/// Which memories are the batches of a conversation.
pub fn batches_filter(conversation: &ConversationId) -> MemoryFilter {
    let metadata = Map::from_iter([(CONVERSATION.to_owned(), json!(conversation))]);
    MemoryFilter {
        tiers: vec![MemoryTier::Archival],
        kinds: vec![KIND.to_owned()],
        metadata,
        ..MemoryFilter::default()
    }
}

/// `compaction-batch-<conversation>-<end time>`; with a number behind it if that is `taken` already.
pub(super) fn label(conversation: &ConversationId, end_ms: i64, taken: impl Fn(&str) -> bool) -> String {
    let plain = format!("compaction-batch-{conversation}-{}", rfc3339(end_ms));
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

    /// Reads a batch back. `None`: the memory is none, or is not read whole.
    pub fn read(memory: &Memory) -> Option<Self> {
        let (header, summary) = memory.content.split_once('\n')?;
        let mut fields = header.strip_prefix('[')?.strip_suffix(']')?.split('|');
        let mut field = |name: &str| fields.next()?.strip_prefix(name)?.strip_prefix(':').map(str::to_owned);
        Some(Self {
            label: memory.label.clone()?,
            summary: summary.to_owned(),
            depth: field("depth")?.parse().ok()?,
            start_ms: parse_rfc3339(&field("start")?)?,
            end_ms: parse_rfc3339(&field("end")?)?,
            count: field("count")?.parse().ok()?,
        })
    }

    /// As it is archived. Its id hangs on its label, so that a repeat writes the same memory.
    pub(super) fn to_memory(&self, conversation: &ConversationId) -> NewMemory {
        let digest = hash::hex(&hash::sha256(&self.label)[..16]);
        let metadata: [(&str, Value); 5] = [
            (CONVERSATION, json!(conversation)),
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
            content: format!("{}\n{}", self.header(), self.summary),
            significance: SIGNIFICANCE,
            metadata: metadata.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            embedding: None,
            expect_version: None,
        }
    }
}
