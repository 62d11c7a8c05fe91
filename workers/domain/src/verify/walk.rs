//! Reads whole histories and feeds the checker.

use std::collections::VecDeque;

use schemas::id::SessionKey;
use schemas::limits::PAGE_MAX;
use schemas::problem::Code;
use schemas::record::Entry;

use super::check::Checker;
use crate::failure::Failure;
use crate::invariant::{Broken, Invariant};
use crate::ports::{Archive, Journal, Sessions};
use crate::read::{StreamItem, merge::items_of, snapshot};

/// How far a walk has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    pub sessions: u64,
    pub steps: u64,
    pub broken: u64,
}

/// What a walk found.
#[derive(Debug, Clone, Default)]
pub struct Verdict {
    pub seen: Progress,
    pub broken: Vec<Broken>,
}

/// Findings kept in all.
const FINDINGS_MAX: usize = 1_000;

/// Checks every session of every namespace, in the order of their keys; `progress` is called after each. Works
/// beside a running fleet: what is committed during the walk may be seen or not.
pub async fn verify_all(
    sessions: &dyn Sessions,
    journal: &dyn Journal,
    archive: &dyn Archive,
    progress: &mut (dyn FnMut(&Progress) + Send),
) -> Result<Verdict, Failure> {
    let mut verdict = Verdict::default();
    let mut after: Option<SessionKey> = None;
    loop {
        // No list of namespaces: one may have sessions and no token (any more).
        let page = sessions.heads(after.as_ref(), PAGE_MAX).await?;
        for (key, _) in &page {
            let (mut broken, mut steps) = verify_session(sessions, journal, archive, key).await?;
            if !broken.is_empty() {
                // Rows may have moved from journal to archive in between: what counts is found twice.
                (broken, steps) = verify_session(sessions, journal, archive, key).await?;
            }
            verdict.seen.sessions += 1;
            verdict.seen.steps += steps;
            verdict.seen.broken += broken.len() as u64;
            verdict.broken.extend(broken);
            verdict.broken.truncate(FINDINGS_MAX);
            progress(&verdict.seen);
        }
        if page.len() < PAGE_MAX {
            return Ok(verdict);
        }
        after = page.into_iter().next_back().map(|(key, _)| key);
    }
}

/// Checks one session; answers what is broken and how many steps it has.
pub async fn verify_session(
    sessions: &dyn Sessions,
    journal: &dyn Journal,
    archive: &dyn Archive,
    key: &SessionKey,
) -> Result<(Vec<Broken>, u64), Failure> {
    // In this order each read is of the same time as the one before, or newer. Row and snapshot are
    // two reads: the row is read first, so the snapshot is never the older one by right.
    let Some(row) = sessions.session(key).await? else {
        // No row is ever deleted.
        let evidence = format!("session {key} is registered, and its row cannot be found");
        return Ok((vec![Broken { invariant: Invariant::S3, evidence }], 0));
    };
    let snapshot = snapshot(journal, archive, &row).await?;
    let mut checker = Checker::new(row.key.clone(), snapshot);
    let mut tail = Tail::new(journal, row.key.clone());
    let mut archived = Archived::new(archive, row.key.clone());
    // Both ascend. What both have must be one and the same; each alone must not repeat itself.
    tail.fill().await?;
    archived.fill().await?;
    loop {
        let (left, right) = (tail.front(), archived.front());
        match (left, right) {
            (None, None) => break,
            (Some(a), Some(b)) if a.offset() == b.offset() => {
                if !same_item(a, b) {
                    let offset = a.offset();
                    let evidence = format!("journal and archive differ at offset {offset}");
                    checker.report(Invariant::J1, evidence);
                }
                checker.item(a);
                tail.pop();
                archived.pop();
            }
            (Some(a), Some(b)) if a.offset() < b.offset() => {
                checker.item(a);
                tail.pop();
            }
            (Some(a), None) => {
                checker.item(a);
                tail.pop();
            }
            (_, Some(b)) => {
                checker.item(b);
                archived.pop();
            }
        }
        tail.fill().await?;
        archived.fill().await?;
    }
    let steps = checker.steps();
    Ok((checker.finish(&row.head), steps))
}

/// JSON may be written in another way; everything else must be equal.
fn same_item(a: &StreamItem, b: &StreamItem) -> bool {
    a == b || {
        let value = |item: &StreamItem| serde_json::to_value(crate::read::view::stream_event(item)).ok();
        value(a) == value(b)
    }
}

/// The session's journal in offset order, a page at a time.
struct Tail<'a> {
    journal: &'a dyn Journal,
    key: SessionKey,
    after: u64,
    items: VecDeque<StreamItem>,
    done: bool,
}

impl<'a> Tail<'a> {
    fn new(journal: &'a dyn Journal, key: SessionKey) -> Self {
        Self { journal, key, after: 0, items: VecDeque::new(), done: false }
    }

    fn front(&self) -> Option<&StreamItem> {
        self.items.front()
    }

    fn pop(&mut self) {
        self.items.pop_front();
    }

    async fn fill(&mut self) -> Result<(), Failure> {
        const ENTRIES: usize = 64;
        while !self.done && self.items.is_empty() {
            let rows = self.journal.entries(&self.key, self.after, ENTRIES).await?;
            self.done = rows.len() < ENTRIES;
            for row in rows {
                self.after = self.after.max(last_offset(&row.entry));
                let mut items: Vec<StreamItem> = items_of(row).collect();
                items.sort_by_key(StreamItem::offset);
                self.items.extend(items);
            }
        }
        Ok(())
    }
}

fn last_offset(entry: &Entry) -> u64 {
    entry.head.next_offset.saturating_sub(1)
}

/// The session's rows in the archive in offset order, doubled rows included.
struct Archived<'a> {
    archive: &'a dyn Archive,
    key: SessionKey,
    steps: Rows,
    events: Rows,
}

#[derive(Default)]
struct Rows {
    after: u64,
    items: VecDeque<StreamItem>,
    done: bool,
}

impl Rows {
    /// Takes a page. The rows of its last offset are left for the next page, so that a doubled row
    /// cannot hide behind a page's end.
    fn take(&mut self, mut page: Vec<StreamItem>, limit: usize) {
        self.done = page.len() < limit;
        if let (false, Some(last)) = (self.done, page.last().map(StreamItem::offset)) {
            let whole = page.iter().position(|item| item.offset() == last).unwrap_or(0);
            if whole > 0 {
                page.truncate(whole);
            }
        }
        self.after = page.last().map_or(self.after, StreamItem::offset);
        self.items.extend(page);
    }

    fn is_wanted(&self) -> bool {
        !self.done && self.items.is_empty()
    }
}

impl<'a> Archived<'a> {
    fn new(archive: &'a dyn Archive, key: SessionKey) -> Self {
        Self { archive, key, steps: Rows::default(), events: Rows::default() }
    }

    fn steps_first(&self) -> bool {
        match (self.steps.items.front(), self.events.items.front()) {
            (Some(step), Some(event)) => step.offset() <= event.offset(),
            (step, _) => step.is_some(),
        }
    }

    fn front(&self) -> Option<&StreamItem> {
        let rows = if self.steps_first() { &self.steps } else { &self.events };
        rows.items.front()
    }

    fn pop(&mut self) {
        let rows = if self.steps_first() { &mut self.steps } else { &mut self.events };
        rows.items.pop_front();
    }

    async fn fill(&mut self) -> Result<(), Failure> {
        let mut limit = PAGE_MAX;
        while self.steps.is_wanted() {
            match self.archive.steps_after_offset(&self.key, self.steps.after, limit).await {
                Err(failure) if failure.code == Code::TooLarge && limit > 2 => limit /= 4,
                page => self.steps.take(page?.into_iter().map(StreamItem::Step).collect(), limit),
            }
        }
        while self.events.is_wanted() {
            let page = self.archive.events(&self.key, self.events.after, PAGE_MAX).await?;
            self.events.take(page.into_iter().map(StreamItem::Event).collect(), PAGE_MAX);
        }
        Ok(())
    }
}
