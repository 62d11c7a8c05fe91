//! One queue of the broker: what waits in it, what was given back, and who may take it. Follows
//! RabbitMQ's quorum queues with a single active consumer, including their surprises.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::ports::Content;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::grave::Grave;

/// A message and its way so far.
#[derive(Debug, Clone)]
pub struct Message {
    pub content: Content,
    /// How often it was given back.
    pub returns: u32,
}

#[derive(Clone)]
pub struct SharedLane(Arc<(Mutex<LaneState>, Notify)>);

struct LaneState {
    name: String,
    grave: Grave,
    /// How many messages were acknowledged.
    acknowledged: u64,
    /// By due time, then by arrival.
    waiting: BTreeMap<(Instant, u64), Message>,
    /// Given back: before all that waits, in the order of giving back.
    returned: VecDeque<Message>,
    counter: u64,
    /// The newest consumer.
    newest: u64,
    /// Those whose owner has not left.
    present: BTreeSet<u64>,
    hand_over: Option<HandOver>,
    /// Consumers up to this one have lost their channel.
    broken: u64,
}

/// How the newest consumer comes after the one before it.
#[derive(Debug, Clone, Copy)]
pub struct HandOver {
    /// When the older one is gone at the latest.
    pub until: Instant,
    /// The newer one gets messages while the older still holds some, which come back late (what a
    /// cancelled consumer or a partition does). Else it waits for the older one's end.
    pub overlaps: bool,
}

/// What a consumer finds.
pub enum Look {
    Gone,
    Found(Message),
    /// Nothing before this time.
    Wait(Option<Instant>),
}

impl SharedLane {
    pub fn new(name: String, grave: Grave) -> Self {
        let state = LaneState {
            name,
            grave,
            acknowledged: 0,
            waiting: BTreeMap::new(),
            returned: VecDeque::new(),
            counter: 0,
            newest: 0,
            present: BTreeSet::new(),
            hand_over: None,
            broken: 0,
        };
        Self(Arc::new((Mutex::new(state), Notify::new())))
    }

    pub fn push(&self, due: Instant, content: Content) {
        let mut state = self.lock();
        state.counter += 1;
        let number = state.counter;
        state.waiting.insert((due, number), Message { content, returns: 0 });
        drop(state);
        self.wake();
    }

    pub fn len(&self) -> usize {
        let state = self.lock();
        state.waiting.len() + state.returned.len()
    }

    /// Registers the newest consumer.
    pub fn attach(&self, hand_over: HandOver) -> u64 {
        let mut state = self.lock();
        state.newest += 1;
        let newest = state.newest;
        state.present.insert(newest);
        state.hand_over = Some(hand_over);
        drop(state);
        self.wake();
        newest
    }

    pub fn break_channels(&self) {
        let mut state = self.lock();
        state.broken = state.newest;
        drop(state);
        self.wake();
    }

    /// A consumer ends, and the broker takes back what it held, oldest first.
    pub fn detach(&self, consumer: u64, held: impl Iterator<Item = Message>, limit: u32) {
        let mut state = self.lock();
        state.present.remove(&consumer);
        for mut message in held {
            message.returns += 1;
            if message.returns > limit {
                state.grave.bury(&state.name, &message, "given back too often");
            } else {
                state.returned.push_back(message);
            }
        }
        drop(state);
        self.wake();
    }

    pub fn note_acknowledged(&self) {
        self.lock().acknowledged += 1;
    }

    pub fn acknowledged(&self) -> u64 {
        self.lock().acknowledged
    }

    pub fn bury(&self, message: &Message, reason: &str) {
        let state = self.lock();
        state.grave.bury(&state.name, message, reason);
    }

    pub fn look(&self, consumer: u64) -> Look {
        let now = Instant::now();
        let mut state = self.lock();
        match state.standing(consumer, now) {
            Standing::Gone => Look::Gone,
            Standing::Waits(until) => Look::Wait(Some(until)),
            Standing::Active(until) => state.take(now, until),
        }
    }

    pub fn woken(&self) -> tokio::sync::futures::Notified<'_> {
        self.0.1.notified()
    }

    /// Wakes those who wait and whoever comes to wait next.
    fn wake(&self) {
        self.0.1.notify_waiters();
        self.0.1.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, LaneState> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Standing {
    Gone,
    /// Gets nothing before this time.
    Waits(Instant),
    /// Gets what there is, up to this time if there is one.
    Active(Option<Instant>),
}

impl LaneState {
    fn standing(&self, consumer: u64, now: Instant) -> Standing {
        let overlap = self.hand_over.filter(|hand_over| now < hand_over.until);
        if self.broken >= consumer {
            return Standing::Gone;
        }
        if consumer == self.newest {
            let older = self.newest - 1;
            let older_is_active = self.present.contains(&older) && self.broken < older;
            return match overlap {
                Some(HandOver { until, overlaps: false }) if older_is_active => Standing::Waits(until),
                _ => Standing::Active(None),
            };
        }
        match overlap {
            Some(hand_over) if consumer + 1 == self.newest => match hand_over.overlaps {
                true => Standing::Waits(hand_over.until),
                false => Standing::Active(Some(hand_over.until)),
            },
            _ => Standing::Gone,
        }
    }

    fn take(&mut self, now: Instant, until: Option<Instant>) -> Look {
        if let Some(message) = self.returned.pop_front() {
            return Look::Found(message);
        }
        match self.waiting.first_entry() {
            Some(first) if first.key().0 <= now => Look::Found(first.remove()),
            Some(first) => Look::Wait(Some(until.map_or(first.key().0, |until| until.min(first.key().0)))),
            None => Look::Wait(until),
        }
    }
}
