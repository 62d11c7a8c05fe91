//! A walk over all dead letters, the oldest first, a few at a time. What is not removed on the way is held until its
//! end, or it would be met again, and then given back: about in the order it lay in, as RabbitMQ does it.

use std::sync::Arc;
use std::time::Duration;

use domain::failure::Failure;
use futures::StreamExt;
use lapin::Channel;
use lapin::message::Delivery;
use lapin::options::{
    BasicAckOptions, BasicCancelOptions, BasicConsumeOptions, BasicGetOptions, BasicNackOptions, BasicQosOptions,
};
use lapin::types::FieldTable;
use schemas::topology::QUEUE_DEAD;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::super::fault;
use super::super::link::Up;
use super::turn;

/// Letters of one round, of which few are larger than those before them.
const ROUND_MAX: u64 = 256;
const ROUND_BYTES: u64 = 16 << 20;
/// Letters that are there come at once.
const QUIET: Duration = Duration::from_secs(2);
/// To give back all that a long walk holds.
const END_MAX: Duration = Duration::from_secs(30);

pub struct Walk {
    up: Arc<Up>,
    channel: Channel,
    /// Closed by whoever waits for what comes of it.
    caller: oneshot::Sender<()>,
    rounds: u64,
    /// Of those that lay there when it began: what comes later, because it was sent back and died again, say, is
    /// behind them. `None` before the first.
    left: Option<u64>,
    largest: u64,
    /// Letters that were taken and are not removed.
    held: usize,
}

impl Walk {
    /// On a channel that has the turn.
    pub fn new(up: Arc<Up>, channel: Channel, caller: oneshot::Sender<()>) -> Self {
        Self { up, channel, caller, rounds: 0, left: None, largest: 1, held: 0 }
    }

    /// The next few. None: there are no more.
    ///
    /// # Errors
    /// The broker is away, or nobody waits for this any longer.
    pub async fn next(&mut self) -> Result<Vec<Delivery>, Failure> {
        if self.caller.is_closed() {
            return Err(Failure::unavailable("nobody waits for it any longer"));
        }
        let taken = match self.left {
            None => self.first().await?,
            Some(left) => {
                let wanted = left.min(ROUND_MAX).min(ROUND_BYTES / self.largest).max(left.min(1));
                let taken = if wanted == 0 { Vec::new() } else { self.round(wanted as u16).await? };
                // Less than there were: whoever knows nothing of turns has the others.
                self.left = Some(if (taken.len() as u64) < wanted { 0 } else { left - wanted });
                taken
            }
        };
        let largest = taken.iter().map(|delivery| delivery.data.len() as u64).max();
        self.largest = self.largest.max(largest.unwrap_or(0));
        self.held += taken.len();
        Ok(taken)
    }

    /// The oldest one, with the number of those behind it.
    async fn first(&mut self) -> Result<Vec<Delivery>, Failure> {
        let got = self.channel.basic_get(QUEUE_DEAD.into(), BasicGetOptions { no_ack: false }).await;
        let message = got.map_err(|error| cannot(&error))?;
        self.left = Some(message.as_ref().map_or(0, |message| u64::from(message.message_count)));
        Ok(message.into_iter().map(|message| message.delivery).collect())
    }

    /// A consumer of its own for each round: one that holds what it is not to remove would get nothing more, and
    /// a get for each letter takes a commit of the queue each.
    async fn round(&mut self, wanted: u16) -> Result<Vec<Delivery>, Failure> {
        self.rounds += 1;
        // What is given back at once is given back by the names of consumers.
        let name = format!("round-{:012}", self.rounds);
        self.channel.basic_qos(wanted, BasicQosOptions { global: false }).await.map_err(|error| cannot(&error))?;
        let options = BasicConsumeOptions::default();
        let consumed =
            self.channel.basic_consume(QUEUE_DEAD.into(), name.as_str().into(), options, FieldTable::default());
        let mut consumer = consumed.await.map_err(|error| cannot(&error))?;
        let mut taken = Vec::with_capacity(usize::from(wanted));
        while taken.len() < usize::from(wanted) {
            match timeout(QUIET, consumer.next()).await {
                Ok(Some(delivery)) => taken.push(delivery.map_err(|error| cannot(&error))?),
                Ok(None) => return Err(Failure::unavailable("the broker ended a look at the dead letters")),
                Err(_) => break,
            }
        }
        let cancelled = self.channel.basic_cancel(name.as_str().into(), BasicCancelOptions::default()).await;
        cancelled.map_err(|error| cannot(&error))?;
        Ok(taken)
    }

    /// What was taken goes for good.
    pub async fn remove(&mut self, tags: &[u64]) -> Result<(), Failure> {
        self.held = self.held.saturating_sub(tags.len());
        // If nothing else is held, the last one stands for all.
        let multiple = self.held == 0;
        let told = if multiple { &tags[tags.len().saturating_sub(1)..] } else { tags };
        for tag in told {
            let acked = self.channel.basic_ack(*tag, BasicAckOptions { multiple }).await;
            acked.map_err(|error| fault::failure("cannot remove a dead letter", &error))?;
        }
        Ok(())
    }

    /// Gives back what was taken and not removed, and the turn. Told so, the broker has done it before the next look;
    /// by the end of the channel alone it would do it some time later. An error: the channel is lost, so the
    /// broker does it by itself, and may have heard nothing of what was removed last.
    pub async fn end(self) -> Result<(), Failure> {
        let all = BasicNackOptions { multiple: true, requeue: true };
        let ended = async {
            self.channel.basic_nack(0, all).await?;
            turn::end(&self.channel).await?;
            self.channel.close(200, "OK".into()).await
        };
        match timeout(END_MAX, ended).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => {
                let _ = timeout(END_MAX, turn::end_anew(&self.up.connection)).await;
                Err(cannot(&error))
            }
            Err(_) => Err(Failure::in_doubt("the broker does not answer")),
        }
    }
}

fn cannot(error: &lapin::Error) -> Failure {
    fault::failure("cannot look at the dead letters", error)
}
