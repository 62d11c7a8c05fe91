//! The checker: takes items in offset order and keeps what it finds broken.

use std::fmt::Display;

use schemas::frame::StepToken;
use schemas::id::SessionKey;
use schemas::json::Json;
use schemas::record::Snapshot;
use schemas::session::Head;

use crate::invariant::{Broken, Invariant};
use crate::read::StreamItem;

/// Findings kept per session; one is enough to know that it is broken.
const FINDINGS_MAX: usize = 20;

/// Checks one session's history. Feed [`Checker::item`] in offset order from the first item on.
pub struct Checker {
    key: SessionKey,
    snapshot: Option<Snapshot>,
    last_offset: u64,
    steps: u64,
    next_token: Option<StepToken>,
    broken: Vec<Broken>,
}

impl Checker {
    /// `snapshot` must have been read before the items: they may be newer, never older.
    pub fn new(key: SessionKey, snapshot: Option<Snapshot>) -> Self {
        Self { key, snapshot, last_offset: 0, steps: 0, next_token: None, broken: Vec::new() }
    }

    /// Offset of the last item seen.
    pub fn last_offset(&self) -> u64 {
        self.last_offset
    }

    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Records a finding of the caller's.
    pub fn report(&mut self, invariant: Invariant, evidence: impl Display) {
        if self.broken.len() < FINDINGS_MAX {
            self.broken.push(Broken { invariant, evidence: format!("{}: {evidence}", self.key) });
        }
    }

    pub fn item(&mut self, item: &StreamItem) {
        if *item.key() != self.key {
            self.report(Invariant::N1, format_args!("a row of {} is among its rows", item.key()));
            return;
        }
        let (offset, expected) = (item.offset(), self.last_offset + 1);
        if offset < expected {
            self.report(Invariant::J1, format_args!("offset {offset} is there twice"));
            return;
        }
        if offset > expected {
            self.report(Invariant::J1, format_args!("offsets {expected} to {} are missing", offset - 1));
        }
        self.last_offset = offset;
        if let StreamItem::Step(stored) = item {
            self.step(&stored.step);
        }
    }

    fn step(&mut self, step: &schemas::record::StepRecord) {
        let expected = self.steps;
        if step.iteration != expected {
            self.report(Invariant::S2, format_args!("iteration {expected} should follow, not {}", step.iteration));
        }
        if let Some(was) = self.next_token.take().filter(|token| *token != step.step_token) {
            let (n, is) = (step.iteration, &step.step_token);
            self.report(Invariant::S4, format_args!("iteration {n} has token {is:?}; the step before gave {was:?}"));
        }
        let resumes_here = self.snapshot.as_ref().is_some_and(|s| s.head.iteration() == Some(step.iteration));
        if resumes_here {
            self.snapshot_agrees(step);
        }
        self.steps = step.iteration + 1;
        self.next_token = Some(step.next_step_token.clone());
    }

    fn snapshot_agrees(&mut self, step: &schemas::record::StepRecord) {
        let Some(snapshot) = self.snapshot.take() else { return };
        let head = &snapshot.head;
        if head.next_step_token != step.next_step_token || head.step_token.as_ref() != Some(&step.step_token) {
            let (n, next) = (step.iteration, &head.next_step_token);
            self.report(
                Invariant::S3,
                format_args!("the snapshot at iteration {n} goes on with {next:?}, the step not"),
            );
        }
        if !same_json(&snapshot.state, &step.state) {
            self.report(Invariant::S3, format_args!("the snapshot at iteration {} has another state", step.iteration));
        }
        self.snapshot = Some(snapshot);
    }

    /// Ends the check. `head` must have been read before the items.
    pub fn finish(mut self, head: &Head) -> Vec<Broken> {
        let (steps, last) = (self.steps, self.last_offset);
        if steps < head.steps {
            self.report(Invariant::S3, format_args!("{} steps are committed, {steps} are there", head.steps));
        }
        if last + 1 < head.next_offset {
            self.report(Invariant::J1, format_args!("history ends at offset {last}, not at {}", head.next_offset - 1));
        }
        match &self.snapshot {
            None if head.next_offset > 1 => self.report(Invariant::J1, "it has a history and no snapshot"),
            Some(snapshot) if snapshot.head.next_offset < head.next_offset => {
                let (old, new) = (snapshot.head.next_offset, head.next_offset);
                self.report(Invariant::J1, format_args!("its snapshot stands at offset {old}, its row at {new}"));
            }
            Some(snapshot) if snapshot.head.next_offset > last + 1 => {
                let ahead = snapshot.head.next_offset - 1;
                self.report(Invariant::J1, format_args!("its snapshot knows offset {ahead}, history ends at {last}"));
            }
            _ => {}
        }
        self.broken
    }
}

/// Equal as values: a store may have written the same JSON in another way.
fn same_json(a: &Json, b: &Json) -> bool {
    a == b || a.to_value() == b.to_value()
}
