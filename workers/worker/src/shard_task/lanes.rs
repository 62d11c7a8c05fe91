//! One lane of a shard on the queue. It is opened in the background and opened anew whenever it
//! ends: nothing waits for the broker, since the ledger has everything.

use std::pin::Pin;
use std::sync::Arc;

use domain::failure::Failure;
use domain::ports::{Deliveries, Delivery};
use schemas::action::Lane;

use crate::actor::ShardContext;

type Opening = Pin<Box<dyn Future<Output = Result<Box<dyn Deliveries>, Failure>> + Send>>;

enum Link {
    Closed,
    Opening(Opening),
    Open(Box<dyn Deliveries>),
}

pub(super) struct Lanes {
    context: Arc<ShardContext>,
    lane: Lane,
    link: Link,
    /// How often it was opened: a tag is of use only with the deliveries it came from.
    opened: u64,
    /// Tags of what is to be buried, and why. The broker hands out only so much of it.
    unburied: Vec<(u64, String)>,
}

/// A delivery's place, for as long as its lane is not opened anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub lane: Lane,
    opened: u64,
    tag: u64,
}

impl Lanes {
    pub fn new(context: Arc<ShardContext>, lane: Lane) -> Self {
        Self { context, lane, link: Link::Closed, opened: 0, unburied: Vec::new() }
    }

    /// Begins to open the lane, unless it is open.
    pub fn open(&mut self) {
        if matches!(self.link, Link::Closed) {
            let (context, lane) = (self.context.clone(), self.lane);
            self.link =
                Link::Opening(Box::pin(
                    async move { context.shared.deps.queue.consume(context.lease.shard, lane).await },
                ));
        }
    }

    /// The next delivery; pends while the lane is closed. Cancel safe.
    pub async fn next(&mut self) -> Delivery {
        loop {
            self.link = match &mut self.link {
                Link::Closed => std::future::pending().await,
                Link::Opening(opening) => match opening.await {
                    Ok(deliveries) => {
                        self.opened += 1;
                        // Their channel was lost, so they come again.
                        self.unburied.clear();
                        Link::Open(deliveries)
                    }
                    Err(failure) => {
                        tracing::debug!(%failure, "cannot consume; the ledger is polled meanwhile");
                        Link::Closed
                    }
                },
                Link::Open(deliveries) => match deliveries.next().await {
                    Some(delivery) => return delivery,
                    None => Link::Closed,
                },
            };
        }
    }

    pub fn place(&self, tag: u64) -> Place {
        Place { lane: self.lane, opened: self.opened, tag }
    }

    pub async fn ack(&mut self, place: Place) {
        if let Some(deliveries) = self.of(place)
            && deliveries.ack(place.tag).await.is_err()
        {
            self.link = Link::Closed;
        }
    }

    /// Moves a delivery to the dead letters, as soon as the broker takes them.
    pub async fn bury(&mut self, place: Place, reason: String) {
        if self.of(place).is_some() {
            self.unburied.push((place.tag, reason));
            self.bury_on().await;
        }
    }

    /// Tries on with what could not be buried. It is held until then: a channel that is given up for it would bring
    /// all that it has handed out again, and count that against each message.
    pub async fn bury_on(&mut self) {
        let Link::Open(deliveries) = &mut self.link else { return };
        if self.unburied.is_empty() || self.context.shared.deps.queue.ping().await.is_err() {
            return;
        }
        for (tag, reason) in std::mem::take(&mut self.unburied) {
            if let Err(failure) = deliveries.bury(tag, &reason).await {
                tracing::debug!(%failure, lane = self.lane.as_str(), "cannot bury a message yet");
                self.unburied.push((tag, reason));
            }
        }
    }

    fn of(&mut self, place: Place) -> Option<&mut Box<dyn Deliveries>> {
        match &mut self.link {
            Link::Open(deliveries) if place.opened == self.opened => Some(deliveries),
            _ => None,
        }
    }
}
