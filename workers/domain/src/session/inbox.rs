//! Admission of one lane: dedupe, order by `session_seq`, notice gaps (DESIGN 3, custody).
//!
//! The queue may repeat, reorder and lose; the ledger numbers each lane 1, 2, 3 … So a number at
//! or below `admitted` is a repeat, the next one is admitted, and any other means that the ledger
//! must be asked.

use std::collections::VecDeque;

use schemas::action::Action;
use schemas::limits::INBOX_ACTIONS_MAX;

/// What became of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    Admitted,
    /// It was admitted or processed before.
    Repeated,
    /// Something before it is missing, or the inbox is full: read the ledger.
    Behind,
}

#[derive(Debug, Default)]
pub struct LaneInbox {
    queue: VecDeque<Action>,
    /// Every unprocessed action up to here is in `queue`.
    admitted: u64,
    /// The ledger may hold more than is admitted.
    behind: bool,
}

impl LaneInbox {
    pub fn admit(&mut self, action: Action) -> Admission {
        if action.session_seq <= self.admitted {
            return Admission::Repeated;
        }
        if self.behind || action.session_seq != self.admitted + 1 || self.queue.len() >= INBOX_ACTIONS_MAX {
            self.behind = true;
            return Admission::Behind;
        }
        self.admitted = action.session_seq;
        self.queue.push_back(action);
        Admission::Admitted
    }

    /// The ledger may have something that is not here: a nudge, a lost delivery.
    pub fn suspect(&mut self) {
        self.behind = true;
    }

    /// Where and how much to read from the ledger, if it should be read now.
    pub fn wants(&self) -> Option<(u64, usize)> {
        let room = INBOX_ACTIONS_MAX.saturating_sub(self.queue.len());
        (self.behind && room > 0).then_some((self.admitted, room))
    }

    /// Takes the answer of the ledger to [`LaneInbox::wants`].
    pub fn refill(&mut self, actions: Vec<Action>, last_seq: u64, asked: usize) {
        let complete = actions.len() < asked;
        for action in actions {
            if action.session_seq > self.admitted {
                self.admitted = action.session_seq;
                self.queue.push_back(action);
            }
        }
        if complete {
            self.admitted = self.admitted.max(last_seq);
            self.behind = false;
        }
    }

    /// Place of the newest admitted action in the lane.
    pub fn admitted(&self) -> u64 {
        self.admitted
    }

    pub fn front(&self) -> Option<&Action> {
        self.queue.front()
    }

    pub fn pop(&mut self) -> Option<Action> {
        self.queue.pop_front()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Action> {
        self.queue.iter()
    }

    pub fn len(&self) -> usize {
        self.queue.len()
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Takes out the actions that match, keeping the order of both.
    pub fn extract(&mut self, mut wanted: impl FnMut(&Action) -> bool) -> Vec<Action> {
        let mut taken = Vec::new();
        let mut kept = VecDeque::with_capacity(self.queue.len());
        for action in self.queue.drain(..) {
            if wanted(&action) { taken.push(action) } else { kept.push_back(action) }
        }
        self.queue = kept;
        taken
    }

    /// Takes out one action by its place in the lane.
    pub fn remove(&mut self, session_seq: u64) -> Option<Action> {
        let at = self.queue.iter().position(|action| action.session_seq == session_seq)?;
        self.queue.remove(at)
    }
}
