//! The queue of an embedded fleet: bounded channels in this process. What does not fit is not
//! queued at all; its owner finds it in the ledger, as when a broker is down (DESIGN 3).

mod live;
mod rooms;

use std::collections::HashMap;
use std::sync::Mutex;

use async_trait::async_trait;
use domain::failure::Failure;
use domain::ports::{Content, DeadLetter, DeadLetters, Deliveries, Delivery, Queue, Sweep, Swept, Told};
use schemas::action::{Action, Lane};
use schemas::id::Shard;
use schemas::limits::DELIVERIES_MAX;
use tokio::sync::mpsc;

pub use live::EmbeddedLive;

/// One channel per lane of a shard; made when the owner begins to consume.
#[derive(Default)]
pub struct EmbeddedQueue {
    lanes: Mutex<HashMap<(Shard, Lane), mpsc::Sender<Action>>>,
}

impl EmbeddedQueue {
    pub fn new() -> Self {
        Self::default()
    }

    fn lane(&self, shard: Shard, lane: Lane) -> Option<mpsc::Sender<Action>> {
        self.lanes.lock().expect("no holder panics").get(&(shard, lane)).cloned()
    }
}

#[async_trait]
impl Queue for EmbeddedQueue {
    async fn publish(&self, actions: &[Action]) -> Result<(), Failure> {
        let mut left_out = 0;
        for action in actions {
            let queued = self.lane(action.shard, action.lane()).is_some_and(|tx| tx.try_send(action.clone()).is_ok());
            left_out += usize::from(!queued);
        }
        if left_out == 0 {
            Ok(())
        } else {
            Err(Failure::unavailable(format!("{left_out} actions did not fit the queue; the ledger has them")))
        }
    }

    async fn consume(&self, shard: Shard, lane: Lane) -> Result<Box<dyn Deliveries>, Failure> {
        let (tx, rx) = mpsc::channel(DELIVERIES_MAX);
        // The sender of a consumer before this one is dropped here, which ends its stream.
        self.lanes.lock().expect("no holder panics").insert((shard, lane), tx);
        Ok(Box::new(EmbeddedDeliveries { rx, tag: 0 }))
    }

    /// No other process reaches this queue.
    async fn consume_ingress(&self) -> Result<Box<dyn Deliveries>, Failure> {
        Ok(Box::new(Nothing))
    }

    fn is_durable(&self) -> bool {
        false
    }

    async fn ping(&self) -> Result<(), Failure> {
        Ok(())
    }
}

struct EmbeddedDeliveries {
    rx: mpsc::Receiver<Action>,
    tag: u64,
}

#[async_trait]
impl Deliveries for EmbeddedDeliveries {
    async fn next(&mut self) -> Option<Delivery> {
        let action = self.rx.recv().await?;
        self.tag += 1;
        Some(Delivery { tag: self.tag, content: Content::Action(action) })
    }

    async fn ack(&mut self, _tag: u64) -> Result<(), Failure> {
        Ok(())
    }

    /// There is no place for dead letters, and nothing that could die: the ledger has every action.
    async fn bury(&mut self, _tag: u64, reason: &str) -> Result<(), Failure> {
        tracing::warn!(reason, "a delivery was buried; nothing keeps it");
        Ok(())
    }
}

/// Deliveries that never come.
struct Nothing;

#[async_trait]
impl Deliveries for Nothing {
    async fn next(&mut self) -> Option<Delivery> {
        std::future::pending().await
    }

    async fn ack(&mut self, _tag: u64) -> Result<(), Failure> {
        Ok(())
    }

    async fn bury(&mut self, _tag: u64, _reason: &str) -> Result<(), Failure> {
        Ok(())
    }
}

/// Without a broker there are no dead letters.
#[async_trait]
impl DeadLetters for EmbeddedQueue {
    async fn list(&self, _limit: usize) -> Result<Vec<DeadLetter>, Failure> {
        Ok(Vec::new())
    }

    async fn get(&self, _id: &str) -> Result<Option<DeadLetter>, Failure> {
        Ok(None)
    }

    async fn redrive(&self, _id: &str) -> Result<bool, Failure> {
        Ok(false)
    }

    async fn discard(&self, _id: &str) -> Result<bool, Failure> {
        Ok(false)
    }

    async fn sweep(&self, _sweep: Sweep, _told: Told) -> Result<Swept, Failure> {
        Ok(Swept::default())
    }
}

#[cfg(test)]
mod tests;
