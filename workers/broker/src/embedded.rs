//! The queue of an embedded fleet: bounded channels in this process. What does not fit is not
//! queued at all; its owner finds it in the ledger, as when a broker is down (DESIGN 3).

use std::collections::HashMap;
use std::sync::Mutex;

use async_trait::async_trait;
use domain::failure::Failure;
use domain::ports::{Deliveries, Delivery, Queue};
use schemas::action::{Action, Lane};
use schemas::id::Shard;
use schemas::limits::DELIVERIES_MAX;
use tokio::sync::mpsc;

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
        Some(Delivery { tag: self.tag, action })
    }

    async fn ack(&mut self, _tag: u64) -> Result<(), Failure> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
