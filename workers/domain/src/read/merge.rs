//! Union of two ordered reads: pure, and so tested with every kind of overlap.

use std::collections::BTreeMap;

use schemas::limits::PAGE_BYTES_MAX;
use schemas::record::{JournalRow, StoredStep};

use super::events::StreamItem;
use super::order::step_bytes;
use crate::failure::Failure;
use crate::ports::{EventRow, StepQuery};

/// The steps of a journal row.
pub fn steps_of(row: JournalRow) -> impl Iterator<Item = StoredStep> {
    let JournalRow { key, entry, .. } = row;
    let (agent_id, conversation_id) = (entry.agent_id, entry.conversation_id);
    entry.steps.into_iter().map(move |step| StoredStep {
        key: key.clone(),
        agent_id: agent_id.clone(),
        conversation_id: conversation_id.clone(),
        step,
    })
}

/// Steps and events of a journal row.
pub fn items_of(mut row: JournalRow) -> impl Iterator<Item = StreamItem> {
    let key = row.key.clone();
    let events = std::mem::take(&mut row.entry.events);
    steps_of(row)
        .map(StreamItem::Step)
        .chain(events.into_iter().map(move |event| StreamItem::Event(EventRow { key: key.clone(), event })))
}

/// Keeps the first `limit` of the steps it is shown, in the order of a query, within bounded memory.
pub struct Best<'q> {
    query: &'q StepQuery,
    limit: usize,
    kept: Vec<StoredStep>,
    bytes: usize,
}

impl<'q> Best<'q> {
    pub fn new(query: &'q StepQuery, limit: usize) -> Self {
        Self { query, limit, kept: Vec::new(), bytes: 0 }
    }

    /// Takes a step if it matches. Fails with `too_large` if the best ones alone are too many bytes.
    pub fn offer(&mut self, stored: StoredStep) -> Result<(), Failure> {
        if !self.query.matches(&stored) {
            return Ok(());
        }
        self.bytes += step_bytes(&stored.step);
        self.kept.push(stored);
        if self.kept.len() > 2 * self.limit || self.bytes > 2 * PAGE_BYTES_MAX {
            self.shrink();
            if self.bytes > PAGE_BYTES_MAX && self.kept.len() > 1 {
                return Err(Failure::too_large("the page has too many bytes; ask for fewer rows"));
            }
        }
        Ok(())
    }

    pub fn limit(&self) -> usize {
        self.limit
    }

    pub fn finish(mut self) -> Vec<StoredStep> {
        self.shrink();
        self.kept
    }

    fn shrink(&mut self) {
        self.kept.sort_by(|a, b| self.query.compare(a, b));
        self.kept.truncate(self.limit);
        self.bytes = self.kept.iter().map(|stored| step_bytes(&stored.step)).sum();
    }
}

/// Union of what the journal and the archive answered to one query without offset, ordered. Where
/// both have a step, the journal's is taken.
pub fn union_steps(query: &StepQuery, journal: Vec<StoredStep>, archive: Vec<StoredStep>) -> Vec<StoredStep> {
    let mut all = journal;
    all.extend(archive);
    // Stable, and equal steps have equal places: the journal's stays in front of its twin.
    all.sort_by(|a, b| query.compare(a, b));
    all.dedup_by(|later, earlier| earlier.key == later.key && earlier.step.iteration == later.step.iteration);
    all
}

/// Union of items in offset order, from `after` on, without a gap; at most `limit`. The flag says
/// that items beyond a gap were left out.
pub fn union_items(after: u64, limit: usize, items: impl IntoIterator<Item = StreamItem>) -> (Vec<StreamItem>, bool) {
    let mut by_offset = BTreeMap::new();
    for item in items {
        if item.offset() > after {
            by_offset.entry(item.offset()).or_insert(item);
        }
    }
    let found = by_offset.len().min(limit);
    let gapless: Vec<StreamItem> = by_offset
        .into_iter()
        .take(limit)
        .zip(after + 1..)
        .take_while(|((offset, _), expected)| offset == expected)
        .map(|((_, item), _)| item)
        .collect();
    let gap = gapless.len() < found;
    (gapless, gap)
}
