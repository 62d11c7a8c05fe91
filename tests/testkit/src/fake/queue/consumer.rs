//! A consumer of a lane, up to its prefetch, until its channel is lost or its owner drops it.

use std::collections::BTreeMap;

use async_trait::async_trait;
use domain::failure::Failure;
use domain::ports::{Deliveries, Delivery};

use super::lane::{Look, Message, SharedLane};
use super::{ALARM, QueueFaults, Spell};
use crate::dice::Dice;

pub struct Consumer {
    lane: SharedLane,
    id: u64,
    held: BTreeMap<u64, Message>,
    next_tag: u64,
    dice: Dice,
    prefetch: usize,
    lost_channel: f64,
    delivery_limit: u32,
    alarm: Spell,
    lost: bool,
}

impl Consumer {
    pub fn new(lane: SharedLane, id: u64, dice: Dice, faults: &QueueFaults, alarm: Spell) -> Self {
        Self {
            lane,
            id,
            held: BTreeMap::new(),
            next_tag: 1,
            prefetch: dice.range(faults.prefetch.clone()) as usize,
            dice,
            lost_channel: faults.lost_channel,
            delivery_limit: faults.delivery_limit,
            alarm,
            lost: false,
        }
    }

    fn look(&mut self) -> Look {
        if self.lost {
            return Look::Gone;
        }
        if self.held.len() >= self.prefetch {
            return Look::Wait(None);
        }
        match self.lane.look(self.id) {
            Look::Found(message) if self.dice.chance(self.lost_channel) => {
                self.held.insert(self.next_tag, message);
                Look::Gone
            }
            look => look,
        }
    }

    /// The broker takes back what was not acknowledged.
    fn end(&mut self) {
        if !self.lost {
            self.lost = true;
            self.lane.detach(self.id, std::mem::take(&mut self.held).into_values(), self.delivery_limit);
        }
    }

    fn settle(&mut self, tag: u64) -> Result<Message, Failure> {
        self.held.remove(&tag).ok_or_else(|| Failure::unavailable("the channel is gone"))
    }
}

#[async_trait]
impl Deliveries for Consumer {
    async fn next(&mut self) -> Option<Delivery> {
        loop {
            let lane = self.lane.clone();
            let mut woken = std::pin::pin!(lane.woken());
            woken.as_mut().enable();
            match self.look() {
                Look::Gone => {
                    self.end();
                    return None;
                }
                Look::Found(message) => {
                    let (tag, content) = (self.next_tag, message.content.clone());
                    self.next_tag += 1;
                    self.held.insert(tag, message);
                    return Some(Delivery { tag, content });
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
        self.settle(tag)?;
        self.lane.note_acknowledged();
        Ok(())
    }

    async fn bury(&mut self, tag: u64, reason: &str) -> Result<(), Failure> {
        self.alarm.check(ALARM)?;
        let message = self.settle(tag)?;
        self.lane.bury(&message, reason);
        Ok(())
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.end();
    }
}
