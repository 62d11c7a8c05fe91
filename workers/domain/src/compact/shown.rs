//! The text that stands for everything that was compacted.

use super::batch::Batch;
use crate::time::rfc3339;

/// The first and the last batches; what lies between is told to be in memory. `batches` are oldest
/// first.
pub fn summary_text(batches: &[Batch], clip_first: u32, clip_last: u32) -> String {
    let first = (clip_first as usize).min(batches.len());
    let last = batches.len().saturating_sub(clip_last as usize).max(first);
    let mut parts = vec![format!("[Context Summary: {} earlier messages]", count(batches))];
    parts.extend(batches[..first].iter().map(Batch::text));
    if last > first {
        parts.push(omission(&batches[first..last]));
    }
    parts.extend(batches[last..].iter().map(Batch::text));
    parts.join("\n\n")
}

fn omission(batches: &[Batch]) -> String {
    let start = batches.iter().map(|batch| batch.start_ms).min().unwrap_or_default();
    let end = batches.iter().map(|batch| batch.end_ms).max().unwrap_or_default();
    format!(
        "[{} summaries of {} messages from {} to {} are left out here. Use memory search to find what they say.]",
        batches.len(),
        count(batches),
        rfc3339(start),
        rfc3339(end)
    )
}

fn count(batches: &[Batch]) -> u64 {
    batches.iter().map(|batch| batch.count).sum()
}
