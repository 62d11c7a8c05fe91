//! Sessions that are not in memory and must run at a known time soon.

use std::collections::BTreeSet;

use schemas::id::SessionKey;

/// A bounded horizon of the database's `due` order: what lies beyond is found by a later scan.
#[derive(Default)]
pub(crate) struct Schedule(BTreeSet<(i64, SessionKey)>);

impl Schedule {
    pub fn add(&mut self, wake_at_ms: i64, key: SessionKey) {
        self.0.insert((wake_at_ms, key));
    }

    pub fn next_ms(&self) -> Option<i64> {
        self.0.first().map(|(at, _)| *at)
    }

    /// The next session whose time has come.
    pub fn pop_due(&mut self, now_ms: i64) -> Option<SessionKey> {
        if self.next_ms()? > now_ms {
            return None;
        }
        self.0.pop_first().map(|(_, key)| key)
    }

    /// Forgets what is due later than that.
    pub fn forget_beyond(&mut self, until_ms: i64) {
        self.0.retain(|(at, _)| *at <= until_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schemas::id::{Namespace, SessionId};

    fn key(session: &str) -> SessionKey {
        SessionKey::new(Namespace::default_ns(), SessionId::parse(session).unwrap())
    }

    #[test]
    fn what_is_due_comes_in_order_and_once() {
        let mut schedule = Schedule::default();
        for (at, session) in [(30, "c"), (10, "a"), (20, "b"), (10, "a"), (i64::MAX, "never")] {
            schedule.add(at, key(session));
        }
        schedule.forget_beyond(30);
        assert_eq!((schedule.next_ms(), schedule.pop_due(9)), (Some(10), None));
        let due: Vec<_> = std::iter::from_fn(|| schedule.pop_due(30)).collect();
        assert_eq!(due, [key("a"), key("b"), key("c")]);
        assert_eq!(schedule.next_ms(), None);
    }
}
