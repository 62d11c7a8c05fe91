//! Live notices over the broker: only hints travel, from any worker to the gateways that watch.
//! Within this process notices go from hand to hand, with what was committed.

mod hear;
mod interest;
mod tell;

use async_trait::async_trait;
use domain::ports::{Live, Notice, Subscription};
use domain::shard::event_part;
use schemas::hint::Hint;
use schemas::id::SessionKey;
use tokio::sync::mpsc;

use super::link::Link;
use super::troubles::Troubles;
use crate::embedded::EmbeddedLive;
use interest::{Held, Interest};

/// Hints that wait to be sent; what does not fit is dropped.
const HINTS_MAX: usize = 4_096;

pub struct RabbitLive {
    local: EmbeddedLive,
    interest: Interest,
    hints: mpsc::Sender<Hint>,
}

impl RabbitLive {
    pub(super) fn new(publishing: Link, consuming: Link, troubles: Troubles) -> Self {
        let (hints, told) = mpsc::channel(HINTS_MAX);
        let (local, interest) = (EmbeddedLive::new(), Interest::default());
        tokio::spawn(tell::run(publishing, told));
        tokio::spawn(hear::run(consuming, local.clone(), interest.watch(), troubles));
        Self { local, interest, hints }
    }
}

impl Live for RabbitLive {
    fn publish(&self, notices: Vec<Notice>) {
        for notice in &notices {
            // Full or without a task: a hint may be lost.
            let _ = self.hints.try_send(Hint { key: notice.key.clone(), last_offset: notice.last_offset });
        }
        self.local.publish(notices);
    }

    fn subscribe(&self, key: &SessionKey) -> Box<dyn Subscription> {
        let held = self.interest.hold(event_part(key));
        Box::new(Subscribed { inner: self.local.subscribe(key), _held: held })
    }
}

struct Subscribed {
    inner: Box<dyn Subscription>,
    /// Keeps the session's part bound.
    _held: Held,
}

#[async_trait]
impl Subscription for Subscribed {
    async fn next(&mut self) -> Option<Notice> {
        self.inner.next().await
    }
}
