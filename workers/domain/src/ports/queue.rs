//! The queue: carries accepted actions to the owner of their shard, as fast as it can. It may
//! lose, repeat, delay and reorder: the ledger decides (DESIGN 1, idea 1).

use async_trait::async_trait;
use schemas::action::{Action, Lane};
use schemas::id::Shard;

use crate::failure::Failure;

#[async_trait]
pub trait Queue: Send + Sync {
    /// Hands actions over. `Ok` = confirmed by the broker (or taken by the in-process queue).
    /// Never blocks on a slow consumer: what does not fit is an `Err`, and the owner finds it in
    /// the ledger.
    async fn publish(&self, actions: &[Action]) -> Result<(), Failure>;

    /// Starts to consume one lane of a shard. One consumer per lane; a new one replaces the old.
    /// While the broker is away the deliveries wait for it.
    async fn consume(&self, shard: Shard, lane: Lane) -> Result<Box<dyn Deliveries>, Failure>;

    /// Starts to consume what any client put on the ingress queue: only [`Content::Foreign`].
    /// Consumers compete. Where there is no broker, nothing ever comes.
    async fn consume_ingress(&self) -> Result<Box<dyn Deliveries>, Failure>;

    /// Whether a confirmed action outlives this process. If not, noting its publication is of no use.
    fn is_durable(&self) -> bool {
        true
    }

    /// Whether publishing works at present.
    async fn ping(&self) -> Result<(), Failure>;
}

#[async_trait]
pub trait Deliveries: Send {
    /// The next delivery; `None` once the channel is lost or replaced (consume again). Cancel safe.
    async fn next(&mut self) -> Option<Delivery>;

    /// Acknowledges a delivery, after its action is admitted.
    async fn ack(&mut self, tag: u64) -> Result<(), Failure>;

    /// Moves a delivery to the dead letters, with the reason; acknowledged only once it is there. That publishes,
    /// so it fails while the broker takes no messages. After an `Err` the delivery is as open as before: it may be
    /// buried later, and comes again if the channel is lost.
    async fn bury(&mut self, tag: u64, reason: &str) -> Result<(), Failure>;
}

#[derive(Debug, Clone)]
pub struct Delivery {
    /// Valid with the deliveries it came from, and only there.
    pub tag: u64,
    pub content: Content,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// What this fleet published itself: it is in the ledger.
    Action(Action),
    /// What somebody else put on the queue; nothing about it is checked but its size.
    Foreign(Foreign),
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Foreign {
    pub body: Vec<u8>,
    /// The sender's own name of this message, if it gave one: the same when it is delivered again.
    pub message_id: Option<String>,
}
