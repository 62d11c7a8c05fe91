//! The message that stands for everything that was compacted.

use super::batch::Batch;
use crate::chat::{Message, Role};
use crate::time::rfc3339;

const BEGINNING: &str = "[Context Summary";

/// Whether a message is the summary of an earlier compaction.
pub fn is_summary(message: &Message) -> bool {
    message.role == Role::System && message.plain_text().starts_with(BEGINNING)
}

/// The first and the last batches; what lies between is told to be in memory. `batches` are oldest
/// first, and there is at least one.
pub fn message(batches: &[Batch], clip_first: usize, clip_last: usize) -> Message {
    let first = clip_first.min(batches.len());
    let last = batches.len().saturating_sub(clip_last).max(first);
    let mut parts = vec![title(batches)];
    parts.extend(batches[..first].iter().map(shown));
    if last > first {
        parts.push(omission(&batches[first..last]));
    }
    parts.extend(batches[last..].iter().map(shown));
    Message::text(Role::System, parts.join("\n\n"))
}

fn title(batches: &[Batch]) -> String {
    let (messages, batches) = (messages(batches), batches.len());
    format!("{BEGINNING}: {messages} earlier messages in {batches} summaries, oldest first]")
}

fn shown(batch: &Batch) -> String {
    format!("{}\n{}", batch.header(), batch.summary)
}

fn omission(batches: &[Batch]) -> String {
    let start = batches.iter().map(|batch| batch.start_ms).min().unwrap_or_default();
    let end = batches.iter().map(|batch| batch.end_ms).max().unwrap_or_default();
    format!(
        "[{} summaries of {} messages from {} to {} are left out here. Use memory search to find what they say.]",
        batches.len(),
        messages(batches),
        rfc3339(start),
        rfc3339(end)
    )
}

fn messages(batches: &[Batch]) -> u64 {
    batches.iter().map(|batch| batch.count).sum()
}
