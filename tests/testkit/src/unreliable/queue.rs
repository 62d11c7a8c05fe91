//! The queue as a process sees it. Loss and disorder of deliveries are the broker's own business.

use async_trait::async_trait;
use domain::failure::Failure;
use domain::ports::{Deliveries, Delivery, Queue};
use schemas::action::{Action, Lane};
use schemas::id::Shard;

use super::{Faults, Port, Unreliable};

#[async_trait]
impl<P: Queue + ?Sized> Queue for Unreliable<P> {
    async fn publish(&self, actions: &[Action]) -> Result<(), Failure> {
        self.faults.call(Port::Queue, "queue.publish", self.inner.publish(actions)).await
    }

    async fn consume(&self, shard: Shard, lane: Lane) -> Result<Box<dyn Deliveries>, Failure> {
        let inner = self.faults.call(Port::Queue, "queue.consume", self.inner.consume(shard, lane)).await?;
        Ok(Box::new(UnreliableDeliveries { inner, faults: self.faults.clone() }))
    }

    async fn consume_ingress(&self) -> Result<Box<dyn Deliveries>, Failure> {
        let inner = self.faults.call(Port::Queue, "queue.consume_ingress", self.inner.consume_ingress()).await?;
        Ok(Box::new(UnreliableDeliveries { inner, faults: self.faults.clone() }))
    }

    fn is_durable(&self) -> bool {
        self.inner.is_durable()
    }

    async fn ping(&self) -> Result<(), Failure> {
        self.faults.call(Port::Queue, "queue.ping", self.inner.ping()).await
    }
}

struct UnreliableDeliveries {
    inner: Box<dyn Deliveries>,
    faults: Faults,
}

#[async_trait]
impl Deliveries for UnreliableDeliveries {
    /// The pauses come before the delivery is taken, so this stays cancel safe.
    async fn next(&mut self) -> Option<Delivery> {
        self.faults.alive().await;
        let delivery = self.inner.next().await;
        if self.faults.is_dead() {
            std::future::pending::<()>().await;
        }
        delivery
    }

    async fn ack(&mut self, tag: u64) -> Result<(), Failure> {
        self.faults.call(Port::Queue, "deliveries.ack", self.inner.ack(tag)).await
    }

    async fn bury(&mut self, tag: u64, reason: &str) -> Result<(), Failure> {
        self.faults.call(Port::Queue, "deliveries.bury", self.inner.bury(tag, reason)).await
    }
}
