//! What of a lane came early, by express, and what becomes of its messages on the queue. Pure: the
//! lane's task does what is said here.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use schemas::action::{Action, Lane};
use schemas::id::{ActionId, Namespace, SessionKey};

use super::super::acks::Held;

/// Tags from here on are of copies: the broker's own begin at 1.
const FIRST_TAG: u64 = 1 << 63;
/// Copies that are handed on and not acknowledged. Beyond, the queue is fast enough.
pub(in super::super) const OPEN_MAX: usize = 256;
/// Sessions whose place in the lane is known.
const SESSIONS_MAX: usize = 1_024;
/// Actions that are acknowledged and did not come by the queue yet.
const SETTLED_MAX: usize = 4_096;

/// With the lane, so that consumers share what they know without getting in each other's way.
type Id = (Lane, Namespace, ActionId);

/// A delivery by the queue.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) enum Came {
    /// For the first time: it is handed on.
    First,
    /// Its copy is in the owner's hands, whose acknowledgement counts for both.
    Again,
    /// Its copy is acknowledged: so is this.
    Settled,
}

struct Open {
    id: Id,
    held: Held,
    /// Its message, once that has come.
    queued: Option<u64>,
}

#[derive(Default)]
pub(in super::super) struct Early {
    open: BTreeMap<u64, Open>,
    tags: HashMap<Id, u64>,
    given: u64,
    /// Last place of each session that was handed on.
    last: HashMap<SessionKey, u64>,
}

impl Early {
    pub fn is_copy(tag: u64) -> bool {
        tag >= FIRST_TAG
    }

    /// Whether a copy is handed on, and under which tag: only what is next for its session, so that
    /// an express does not overtake what came before it by the queue alone.
    pub fn copy(&mut self, action: &Action, held: Held) -> Option<u64> {
        let is_next = self.last.get(&action.key()).copied().unwrap_or(0) + 1 == action.session_seq;
        if !is_next || self.open.len() >= OPEN_MAX {
            return None;
        }
        self.note(action);
        let (tag, id) = (FIRST_TAG + self.given, id(action));
        self.given += 1;
        self.tags.insert(id.clone(), tag);
        self.open.insert(tag, Open { id, held, queued: None });
        Some(tag)
    }

    /// An action came by the queue.
    pub fn queued(&mut self, tag: u64, action: &Action, settled: &mut Settled) -> Came {
        let id = id(action);
        if settled.remove(&id) {
            return Came::Settled;
        }
        if let Some(open) = self.tags.get(&id).and_then(|copy| self.open.get_mut(copy))
            && open.queued.is_none()
        {
            open.queued = Some(tag);
            return Came::Again;
        }
        self.note(action);
        Came::First
    }

    /// A copy that is to be buried. It stays open until it is settled.
    pub fn held(&self, tag: u64) -> Option<Held> {
        self.open.get(&tag).map(|open| open.held.clone())
    }

    /// The copy is acknowledged. Returns the tag of its message, if that has come.
    pub fn settle(&mut self, tag: u64, settled: &mut Settled) -> Option<u64> {
        let open = self.open.remove(&tag)?;
        self.tags.remove(&open.id);
        if open.queued.is_none() {
            settled.insert(open.id);
        }
        open.queued
    }

    fn note(&mut self, action: &Action) {
        if self.last.len() >= SESSIONS_MAX {
            // Their next actions come by the queue, and are known from then on.
            self.last.clear();
        }
        let last = self.last.entry(action.key()).or_default();
        *last = action.session_seq.max(*last);
    }
}

fn id(action: &Action) -> Id {
    (action.lane(), action.namespace.clone(), action.action_id.clone())
}

/// Actions that consumers of this process have acknowledged before they came by the queue. It
/// outlives the consumers: the next one of a lane gets what the last one had in hand.
#[derive(Default)]
pub(in super::super) struct Settled {
    ids: HashSet<Id>,
    order: VecDeque<Id>,
}

impl Settled {
    fn insert(&mut self, id: Id) {
        if self.ids.insert(id.clone()) {
            self.order.push_back(id);
        }
        while self.order.len() > SETTLED_MAX {
            // Most of them have come long since.
            if let Some(oldest) = self.order.pop_front() {
                self.ids.remove(&oldest);
            }
        }
    }

    fn remove(&mut self, id: &Id) -> bool {
        self.ids.remove(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::action;

    fn held() -> Held {
        Held { properties: lapin::BasicProperties::default(), body: vec![1] }
    }

    #[test]
    fn a_message_is_acknowledged_with_its_copy_whichever_is_first() {
        let (mut early, mut settled) = (Early::default(), Settled::default());
        let one = early.copy(&action(3, 1), held()).expect("it is the first of its session");
        assert!(Early::is_copy(one) && !Early::is_copy(7));
        assert_eq!(early.settle(one, &mut settled), None);
        assert_eq!(early.queued(7, &action(3, 1), &mut settled), Came::Settled);
        let two = early.copy(&action(3, 2), held()).expect("it is the next");
        assert_eq!(early.queued(8, &action(3, 2), &mut settled), Came::Again);
        assert!(early.held(two).is_some() && early.held(two).is_some());
        assert_eq!(early.settle(two, &mut settled), Some(8));
        // A second message of the same action is the owner's to judge.
        assert_eq!(early.queued(9, &action(3, 2), &mut settled), Came::First);
        assert_eq!(early.settle(two, &mut settled), None);
        assert!(settled.ids.is_empty());
    }

    #[test]
    fn a_copy_does_not_overtake_its_session() {
        let (mut early, mut settled) = (Early::default(), Settled::default());
        assert_eq!(early.copy(&action(3, 2), held()), None, "the first one is on the queue");
        assert_eq!(early.queued(1, &action(3, 1), &mut settled), Came::First);
        assert_eq!(early.copy(&action(3, 1), held()), None, "the queue was faster");
        assert!(early.copy(&action(3, 2), held()).is_some());
        assert!(early.copy(&action(3, 3), held()).is_some());
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let (mut early, mut settled) = (Early::default(), Settled::default());
        for n in 1..=10 * OPEN_MAX as u64 {
            early.copy(&action(3, n), held());
        }
        assert_eq!((early.open.len(), early.tags.len()), (OPEN_MAX, OPEN_MAX));
        for n in 1..=2 * SETTLED_MAX as u64 {
            settled.insert(id(&action(3, n)));
        }
        assert_eq!((settled.ids.len(), settled.order.len()), (SETTLED_MAX, SETTLED_MAX));
        assert!(settled.remove(&id(&action(3, 2 * SETTLED_MAX as u64))) && !settled.remove(&id(&action(3, 1))));
    }
}
