//! A consumer as its owner sees it. The work is done by its own task; when the owner drops this,
//! the task closes the channel, so that everything open goes back to the queue in order.

use async_trait::async_trait;
use domain::failure::Failure;
use domain::ports::{Deliveries, Delivery};
use schemas::action::Lane;
use schemas::id::Shard;
use schemas::topology::{QUEUE_INGRESS, shard_queue};
use tokio::sync::{mpsc, oneshot};

use super::acks::Held;
use super::express;
use super::letter;
use super::publisher::Publisher;

/// Deliveries that are open at a time. Never changed without need: when it shrinks between two
/// consumers, quorum queues return the rest out of order.
pub(super) const PREFETCH: u16 = 256;

/// What to consume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Source {
    Lane(Shard, Lane),
    Ingress,
}

impl Source {
    pub fn is_lane(self) -> bool {
        matches!(self, Self::Lane(..))
    }

    pub fn queue(self) -> String {
        match self {
            Self::Lane(shard, lane) => shard_queue(shard, lane),
            Self::Ingress => QUEUE_INGRESS.to_owned(),
        }
    }
}

/// From the owner to the task.
pub(super) enum Order {
    Ack(u64),
    /// Shows a delivery that is to be buried.
    Show(u64, oneshot::Sender<Option<Held>>),
}

/// The task's ends of the two ways.
pub(super) struct Ends {
    pub deliveries: mpsc::Sender<Delivery>,
    pub orders: mpsc::Receiver<Order>,
}

pub(super) struct Consumer {
    source: Source,
    deliveries: mpsc::Receiver<Delivery>,
    orders: mpsc::Sender<Order>,
    publisher: Publisher,
}

impl Consumer {
    pub fn new(source: Source, publisher: Publisher) -> (Self, Ends) {
        // Room for all that can be open, so that the task never waits for the owner.
        let (delivered, deliveries) = mpsc::channel(usize::from(PREFETCH) + express::OPEN_MAX);
        let (orders, ordered) = mpsc::channel(usize::from(PREFETCH));
        (Self { source, deliveries, orders, publisher }, Ends { deliveries: delivered, orders: ordered })
    }

    async fn order(&self, order: Order) -> Result<(), Failure> {
        self.orders.send(order).await.map_err(|_| lost())
    }
}

fn lost() -> Failure {
    Failure::unavailable("the channel is lost; what was open comes again")
}

#[async_trait]
impl Deliveries for Consumer {
    async fn next(&mut self) -> Option<Delivery> {
        // What is still in hand can no longer be acknowledged, and comes again.
        if self.orders.is_closed() {
            return None;
        }
        self.deliveries.recv().await
    }

    async fn ack(&mut self, tag: u64) -> Result<(), Failure> {
        self.order(Order::Ack(tag)).await
    }

    async fn bury(&mut self, tag: u64, reason: &str) -> Result<(), Failure> {
        // Nothing is copied for a broker that takes nothing.
        self.publisher.ping()?;
        let (show, shown) = oneshot::channel();
        self.order(Order::Show(tag, show)).await?;
        let held = shown.await.ok().flatten().ok_or_else(lost)?;
        self.publisher.publish(vec![letter::write(&self.source.queue(), held, reason)]).await?;
        self.order(Order::Ack(tag)).await
    }
}
