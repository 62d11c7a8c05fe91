//! Sessions that are not in memory and must run at a known time soon.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use schemas::id::SessionKey;

/// A bounded horizon of the database's `due` order: what lies beyond is found by the next scan.
#[derive(Default)]
pub(crate) struct Schedule {
    heap: BinaryHeap<Reverse<(i64, SessionKey)>>,
}

impl Schedule {
    pub fn add(&mut self, wake_at_ms: i64, key: SessionKey) {
        self.heap.push(Reverse((wake_at_ms, key)));
    }

    pub fn next_ms(&self) -> Option<i64> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// The next session whose time has come.
    pub fn pop_due(&mut self, now_ms: i64) -> Option<SessionKey> {
        if self.next_ms()? > now_ms {
            return None;
        }
        self.heap.pop().map(|Reverse((_, key))| key)
    }

    pub fn clear(&mut self) {
        self.heap.clear();
    }
}
