//! A queue that does all that RabbitMQ may do to its users: it loses, repeats, delays and reorders
//! deliveries, gives back what a lost consumer held, loses confirms, drops channels, lets a replaced
//! consumer linger, buries what came back too often, is away at times, and at others takes nothing.

mod consumer;
mod grave;
mod lane;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use domain::failure::Failure;
use domain::ports::{Content, DeadLetter, DeadLetters, Deed, Deliveries, Foreign, Queue, Sweep, Swept, Told};
use schemas::action::{Action, Lane};
use schemas::id::Shard;
use schemas::topology::{QUEUE_INGRESS, shard_queue};
use tokio::time::Instant;

use crate::dice::Dice;
use consumer::Consumer;
use grave::Grave;
use lane::{HandOver, SharedLane};

/// Probabilities per delivery or call, and bounds of delays.
#[derive(Debug, Clone)]
pub struct QueueFaults {
    /// A confirmed message is never delivered.
    pub lose: f64,
    /// A message is delivered twice.
    pub repeat: f64,
    /// A message takes longer than usual; later ones overtake it.
    pub straggle: f64,
    /// Usual time to deliver.
    pub delay_ms: Range<u64>,
    /// Time of a straggler.
    pub straggle_ms: Range<u64>,
    /// The message is taken, the publisher is told otherwise.
    pub lost_confirm: f64,
    /// The consumer's channel breaks instead of delivering.
    pub lost_channel: f64,
    /// A replaced consumer stays for this long, and the new one waits for its end …
    pub linger_ms: Range<u64>,
    /// … unless it gets messages at once, while the replaced one still holds some.
    pub overlap: f64,
    /// Deliveries that a consumer may hold. When it shrinks, what comes back is out of order.
    pub prefetch: Range<u64>,
    /// Returns after which a message is dead.
    pub delivery_limit: u32,
}

impl QueueFaults {
    pub const NONE: QueueFaults = QueueFaults {
        lose: 0.0,
        repeat: 0.0,
        straggle: 0.0,
        delay_ms: 0..1,
        straggle_ms: 0..1,
        lost_confirm: 0.0,
        lost_channel: 0.0,
        linger_ms: 0..1,
        overlap: 0.0,
        prefetch: 256..257,
        delivery_limit: 1_000,
    };
}

/// Messages that a lane holds at most.
const LANE_MAX: usize = 4_096;
const ALARM: &str = "the broker takes no messages for now";

/// Cheap to clone; clones are the same broker.
#[derive(Clone)]
pub struct FaultyQueue {
    faults: Arc<Mutex<QueueFaults>>,
    dice: Dice,
    /// By the name of their queue.
    lanes: Arc<Mutex<BTreeMap<String, SharedLane>>>,
    grave: Grave,
    away: Spell,
    alarm: Spell,
    published: Arc<Mutex<Vec<Action>>>,
}

/// Something that lasts for a while. Cheap to clone; clones are the same.
#[derive(Clone, Default)]
struct Spell(Arc<Mutex<Option<Instant>>>);

impl Spell {
    fn begin(&self, length: Duration) {
        *lock(&self.0) = Some(Instant::now() + length);
    }

    fn end(&self) {
        *lock(&self.0) = None;
    }

    fn check(&self, failure: &str) -> Result<(), Failure> {
        match *lock(&self.0) {
            Some(until) if Instant::now() < until => Err(Failure::unavailable(failure)),
            _ => Ok(()),
        }
    }
}

impl FaultyQueue {
    pub fn new(dice: Dice, faults: QueueFaults) -> Self {
        Self {
            faults: Arc::new(Mutex::new(faults)),
            dice,
            lanes: Arc::default(),
            grave: Grave::default(),
            away: Spell::default(),
            alarm: Spell::default(),
            published: Arc::default(),
        }
    }

    /// No faults: every message once, in order, at once.
    pub fn reliable() -> Self {
        Self::new(Dice::new(0), QueueFaults::NONE)
    }

    /// Ends all faults from now on; what is lost stays lost.
    pub fn heal(&self) {
        *lock(&self.faults) = QueueFaults::NONE;
        self.away.end();
        self.alarm.end();
    }

    /// The broker is away for this long: calls fail, channels break.
    pub fn outage(&self, length: Duration) {
        self.away.begin(length);
        for lane in lock(&self.lanes).values() {
            lane.break_channels();
        }
    }

    /// The broker has no memory or disk left for this long: it takes no messages, dead letters included, and
    /// delivers as before.
    pub fn alarm(&self, length: Duration) {
        self.alarm.begin(length);
    }

    /// Every action handed over so far, in order.
    pub fn published(&self) -> Vec<Action> {
        lock(&self.published).clone()
    }

    /// How many deliveries of a queue were acknowledged so far; buried ones do not count.
    pub fn acknowledged(&self, queue: &str) -> u64 {
        self.lane(queue).acknowledged()
    }

    /// Somebody who is not of the fleet puts bytes on a queue.
    pub fn put(&self, queue: &str, body: Vec<u8>) {
        self.lane(queue).push(Instant::now(), Content::Foreign(Foreign { body, message_id: None }));
    }

    fn lane(&self, queue: &str) -> SharedLane {
        let fresh = || SharedLane::new(queue.to_owned(), self.grave.clone());
        lock(&self.lanes).entry(queue.to_owned()).or_insert_with(fresh).clone()
    }

    fn open(&self, queue: &str) -> Result<Box<dyn Deliveries>, Failure> {
        self.check_up()?;
        let faults = lock(&self.faults).clone();
        let linger = Duration::from_millis(self.dice.range(faults.linger_ms.clone()));
        let hand_over = HandOver { until: Instant::now() + linger, overlaps: self.dice.chance(faults.overlap) };
        let lane = self.lane(queue);
        let id = lane.attach(hand_over);
        Ok(Box::new(Consumer::new(lane, id, self.dice.clone(), &faults, self.alarm.clone())))
    }

    fn check_up(&self) -> Result<(), Failure> {
        self.away.check("the broker is away")
    }

    fn check_takes(&self) -> Result<(), Failure> {
        self.check_up()?;
        self.alarm.check(ALARM)
    }

    fn enqueue(&self, action: &Action, faults: &QueueFaults) -> Result<(), Failure> {
        let lane = self.lane(&shard_queue(action.shard, action.lane()));
        if lane.len() >= LANE_MAX {
            return Err(Failure::unavailable("the lane is full"));
        }
        if self.dice.chance(faults.lose) {
            return Ok(());
        }
        let copies = 1 + usize::from(self.dice.chance(faults.repeat));
        for _ in 0..copies {
            let straggles = self.dice.chance(faults.straggle);
            let delay = self.dice.range(if straggles { faults.straggle_ms.clone() } else { faults.delay_ms.clone() });
            lane.push(Instant::now() + Duration::from_millis(delay), Content::Action(action.clone()));
        }
        Ok(())
    }
}

#[async_trait]
impl Queue for FaultyQueue {
    async fn publish(&self, actions: &[Action]) -> Result<(), Failure> {
        self.check_takes()?;
        let faults = lock(&self.faults).clone();
        lock(&self.published).extend(actions.iter().cloned());
        for action in actions {
            self.enqueue(action, &faults)?;
        }
        if self.dice.chance(faults.lost_confirm) {
            return Err(Failure::in_doubt("the confirm was lost"));
        }
        Ok(())
    }

    async fn consume(&self, shard: Shard, lane: Lane) -> Result<Box<dyn Deliveries>, Failure> {
        self.open(&shard_queue(shard, lane))
    }

    async fn consume_ingress(&self) -> Result<Box<dyn Deliveries>, Failure> {
        self.open(QUEUE_INGRESS)
    }

    async fn ping(&self) -> Result<(), Failure> {
        self.check_takes()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl DeadLetters for FaultyQueue {
    async fn list(&self, limit: usize) -> Result<Vec<DeadLetter>, Failure> {
        self.check_up()?;
        Ok(self.grave.letters().into_iter().take(limit).collect())
    }

    async fn get(&self, id: &str) -> Result<Option<DeadLetter>, Failure> {
        self.check_up()?;
        Ok(self.grave.letters().into_iter().find(|letter| letter.id == id))
    }

    async fn redrive(&self, id: &str) -> Result<bool, Failure> {
        self.check_takes()?;
        let Some((origin, content)) = self.grave.dig_up(id) else { return Ok(false) };
        self.lane(&origin).push(Instant::now(), content);
        Ok(true)
    }

    async fn discard(&self, id: &str) -> Result<bool, Failure> {
        self.check_up()?;
        Ok(self.grave.dig_up(id).is_some())
    }

    async fn sweep(&self, sweep: Sweep, told: Told) -> Result<Swept, Failure> {
        let mut swept = Swept::default();
        for letter in self.list(usize::MAX).await? {
            if sweep.means(&letter) {
                let done = match sweep.deed {
                    Deed::Redrive => self.redrive(&letter.id).await?,
                    Deed::Discard => self.discard(&letter.id).await?,
                };
                swept.done += u64::from(done);
            } else {
                swept.kept += 1;
            }
            told(swept);
        }
        Ok(swept)
    }
}

#[cfg(test)]
mod tests;
