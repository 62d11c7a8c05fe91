//! The stream of a session: steps ∪ events in offset order, without a gap.

use schemas::event::EventRecord;
use schemas::id::SessionKey;
use schemas::limits::PAGE_MAX;
use schemas::problem::Code;
use schemas::record::StoredStep;

use super::ENTRIES_AT_A_TIME;
use super::merge::{items_of, union_items};
use crate::failure::Failure;
use crate::ports::{Archive, EventRow, Journal};

/// One committed thing of a session.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamItem {
    Step(StoredStep),
    Event(EventRow),
}

impl StreamItem {
    /// Its place in the stream; the first is 1.
    pub fn offset(&self) -> u64 {
        match self {
            Self::Step(stored) => stored.step.offset,
            Self::Event(row) => row.event.offset,
        }
    }

    pub fn key(&self) -> &SessionKey {
        match self {
            Self::Step(stored) => &stored.key,
            Self::Event(row) => &row.key,
        }
    }

    pub fn event(&self) -> Option<&EventRecord> {
        match self {
            Self::Step(_) => None,
            Self::Event(row) => Some(&row.event),
        }
    }
}

/// What follows a place of the stream.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EventsPage {
    pub items: Vec<StreamItem>,
    /// More may be there already: read again from the last item.
    pub more: bool,
}

/// Items with `offset > after`, at most `limit`, ascending and without a gap.
///
/// A gap right behind `after` is a retriable failure: what is missing is either about to become
/// visible, or lost (`doctor --verify-history` tells). It is never jumped over.
pub async fn events(
    journal: &dyn Journal,
    archive: &dyn Archive,
    key: &SessionKey,
    after: u64,
    limit: usize,
) -> Result<EventsPage, Failure> {
    let mut limit = limit.clamp(1, PAGE_MAX);
    loop {
        match page(journal, archive, key, after, limit).await {
            Err(failure) if failure.code == Code::TooLarge && limit > 1 => limit = (limit / 4).max(1),
            answer => return answer,
        }
    }
}

async fn page(
    journal: &dyn Journal,
    archive: &dyn Archive,
    key: &SessionKey,
    after: u64,
    limit: usize,
) -> Result<EventsPage, Failure> {
    let rows = journal.entries(key, after, limit.min(ENTRIES_AT_A_TIME)).await?;
    let full = rows.len() == limit.min(ENTRIES_AT_A_TIME);
    let mut items: Vec<StreamItem> = rows.into_iter().flat_map(items_of).filter(|item| item.offset() > after).collect();
    let first = items.iter().map(StreamItem::offset).min();
    // The journal has all that follows, unless it begins later than it should, or is empty.
    if first != Some(after + 1) {
        let steps = archive.steps_after_offset(key, after, limit).await?;
        let events = archive.events(key, after, limit).await?;
        items.extend(steps.into_iter().map(StreamItem::Step));
        items.extend(events.into_iter().map(StreamItem::Event));
    }
    let (items, gap) = union_items(after, limit, items);
    if gap && items.is_empty() {
        return Err(Failure {
            retriable: true,
            ..Failure::internal(format!("the history of {key} does not go on behind offset {after}"))
        });
    }
    let more = gap || full || items.len() == limit;
    Ok(EventsPage { items, more })
}
