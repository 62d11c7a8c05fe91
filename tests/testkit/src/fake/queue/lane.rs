//! One lane of one shard: messages by due time, and the consumers that compete for them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use domain::failure::Failure;
use domain::ports::{Content, Deliveries, Delivery};
use schemas::action::Action;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::dice::Dice;

#[derive(Clone)]
pub struct SharedLane(Arc<(Mutex<LaneState>, Notify)>);

#[derive(Default)]
pub struct LaneState {
    /// By due time, then by arrival.
    waiting: BTreeMap<(Option<Instant>, u64), Action>,
    counter: u64,
    /// The newest consumer.
    generation: u64,
    /// Until when older consumers get a share.
    linger_until: Option<Instant>,
    /// Consumers at or below this generation have lost their channel.
    broken: u64,
}

impl SharedLane {
    pub fn of(state: LaneState) -> Self {
        Self(Arc::new((Mutex::new(state), Notify::new())))
    }

    pub fn push(&self, due: Instant, action: Action) {
        let mut state = self.lock();
        state.counter += 1;
        let place = (Some(due), state.counter);
        state.waiting.insert(place, action);
        drop(state);
        self.wake();
    }

    pub fn len(&self) -> usize {
        self.lock().waiting.len()
    }

    /// Registers the newest consumer; the older ones end at the given time.
    pub fn attach(&self, linger_until: Instant) -> u64 {
        let mut state = self.lock();
        state.generation += 1;
        state.linger_until = Some(linger_until);
        let generation = state.generation;
        drop(state);
        self.wake();
        generation
    }

    pub fn break_channels(&self) {
        let mut state = self.lock();
        state.broken = state.generation;
        drop(state);
        self.wake();
    }

    fn requeue(&self, actions: impl Iterator<Item = Action>) {
        for action in actions {
            self.push(Instant::now(), action);
        }
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

pub struct Consumer {
    lane: SharedLane,
    generation: u64,
    unacked: BTreeMap<u64, Action>,
    next_tag: u64,
    dice: Dice,
    lost_channel: f64,
    lost: bool,
}

enum Look {
    Gone,
    Found(Action),
    /// Nothing before this time.
    Wait(Option<Instant>),
}

impl Consumer {
    pub fn new(lane: SharedLane, generation: u64, dice: Dice, lost_channel: f64) -> Self {
        Self { lane, generation, unacked: BTreeMap::new(), next_tag: 1, dice, lost_channel, lost: false }
    }

    fn look(&mut self) -> Look {
        let now = Instant::now();
        let mut state = self.lane.lock();
        let replaced = state.generation > self.generation;
        let lingers = replaced && state.linger_until.is_some_and(|until| now < until);
        if self.lost || state.broken >= self.generation || (replaced && !lingers) {
            return Look::Gone;
        }
        let Some((&place, _)) = state.waiting.first_key_value() else {
            return Look::Wait(if lingers { state.linger_until } else { None });
        };
        if place.0.is_some_and(|due| due > now) {
            return Look::Wait(place.0);
        }
        if self.dice.chance(self.lost_channel) {
            self.lost = true;
            return Look::Gone;
        }
        match state.waiting.remove(&place) {
            Some(action) => Look::Found(action),
            None => Look::Gone,
        }
    }
}

#[async_trait]
impl Deliveries for Consumer {
    async fn next(&mut self) -> Option<Delivery> {
        loop {
            let lane = self.lane.clone();
            let mut woken = std::pin::pin!(lane.0.1.notified());
            woken.as_mut().enable();
            match self.look() {
                Look::Gone => {
                    // The broker takes back what was not acknowledged.
                    self.lane.requeue(std::mem::take(&mut self.unacked).into_values());
                    return None;
                }
                Look::Found(action) => {
                    let tag = self.next_tag;
                    self.next_tag += 1;
                    self.unacked.insert(tag, action.clone());
                    return Some(Delivery { tag, content: Content::Action(action) });
                }
                Look::Wait(None) => woken.await,
                Look::Wait(Some(until)) => {
                    tokio::select! {
                        biased;
                        () = woken => {}
                        () = tokio::time::sleep_until(until) => {}
                    }
                }
            }
        }
    }

    async fn ack(&mut self, tag: u64) -> Result<(), Failure> {
        match self.unacked.remove(&tag) {
            Some(_) => Ok(()),
            None => Err(Failure::unavailable("the channel is gone")),
        }
    }

    async fn bury(&mut self, tag: u64, _reason: &str) -> Result<(), Failure> {
        self.ack(tag).await
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.lane.requeue(std::mem::take(&mut self.unacked).into_values());
    }
}
