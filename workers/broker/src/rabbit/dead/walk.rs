//! A walk over all dead letters, the oldest first, a few at a time. What is not removed on the way is held until its
//! end, or it would be met again, and then given back: about in the order it lay in, as RabbitMQ does it.
//!
//! A queue takes some commands of a channel at a time. RabbitMQ puts further ones aside until the queue has done those
//! (`quorum_commands_soft_limit`), and with the channel ends what is put aside: a letter that was removed and sent to
//! where it came from would lie there again. So after a few commands the queue is asked for a letter, which it answers
//! in its turn.

use std::collections::{BTreeSet, VecDeque};
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
/// Twice as many may be under way: those before the last answer may still count as such. RabbitMQ's limit is 32.
const COMMANDS_MAX: usize = 12;
/// Letters that are there come at once.
const QUIET: Duration = Duration::from_secs(2);
/// For each portion of what a long walk holds to be given back.
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
    /// The next letters, which the queue answered with.
    ahead: VecDeque<Delivery>,
    /// The tags of letters that were taken and are not removed.
    held: BTreeSet<u64>,
    /// The last tag of each consumer and each get: what one of them took is given back by one command.
    takers: Vec<u64>,
}

impl Walk {
    /// On a channel that has the turn.
    pub fn new(up: Arc<Up>, channel: Channel, caller: oneshot::Sender<()>) -> Self {
        let (ahead, held, takers) = (VecDeque::new(), BTreeSet::new(), Vec::new());
        Self { up, channel, caller, rounds: 0, left: None, largest: 1, ahead, held, takers }
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
                let taken = self.round(wanted as usize).await?;
                // Less than there were: whoever knows nothing of turns has the others.
                self.left = Some(if (taken.len() as u64) < wanted { 0 } else { left - wanted });
                taken
            }
        };
        let largest = taken.iter().map(|delivery| delivery.data.len() as u64).max();
        self.largest = self.largest.max(largest.unwrap_or(0));
        Ok(taken)
    }

    /// The oldest one, with the number of those behind it.
    async fn first(&mut self) -> Result<Vec<Delivery>, Failure> {
        let got = self.get().await?;
        self.left = Some(got.as_ref().map_or(0, |(_, behind)| *behind));
        Ok(got.into_iter().map(|(delivery, _)| delivery).collect())
    }

    /// The next one, with the number of those behind it.
    async fn get(&mut self) -> Result<Option<(Delivery, u64)>, Failure> {
        let got = self.channel.basic_get(QUEUE_DEAD.into(), BasicGetOptions { no_ack: false }).await;
        let Some(message) = got.map_err(|error| cannot(&error))? else { return Ok(None) };
        let behind = u64::from(message.message_count);
        self.hold(std::slice::from_ref(&message.delivery));
        Ok(Some((message.delivery, behind)))
    }

    async fn round(&mut self, wanted: usize) -> Result<Vec<Delivery>, Failure> {
        let mut taken: Vec<Delivery> = self.ahead.drain(..wanted.min(self.ahead.len())).collect();
        let more = wanted - taken.len();
        if more > 0 {
            taken.extend(self.consume(more as u16).await?);
        }
        Ok(taken)
    }

    /// A consumer of its own for each round: one that holds what it is not to remove would get nothing more, and
    /// a get for each letter takes a commit of the queue each.
    async fn consume(&mut self, wanted: u16) -> Result<Vec<Delivery>, Failure> {
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
        self.hold(&taken);
        Ok(taken)
    }

    fn hold(&mut self, taken: &[Delivery]) {
        self.held.extend(taken.iter().map(|delivery| delivery.delivery_tag));
        self.takers.extend(taken.last().map(|delivery| delivery.delivery_tag));
    }

    /// What was taken goes for good.
    pub async fn remove(&mut self, tags: &[u64]) -> Result<(), Failure> {
        for tag in tags {
            self.held.remove(tag);
        }
        if self.held.is_empty() {
            // The last one stands for all.
            return match tags.last() {
                Some(last) => self.ack(*last, true).await,
                None => Ok(()),
            };
        }
        for few in tags.chunks(COMMANDS_MAX) {
            for tag in few {
                self.ack(*tag, false).await?;
            }
            let next = self.get().await?;
            self.ahead.extend(next.map(|(delivery, _)| delivery));
        }
        Ok(())
    }

    async fn ack(&self, tag: u64, multiple: bool) -> Result<(), Failure> {
        let acked = self.channel.basic_ack(tag, BasicAckOptions { multiple }).await;
        acked.map_err(|error| fault::failure("cannot remove a dead letter", &error))
    }

    /// Gives back what was taken and not removed, and the turn. Told so, the broker has done it before the next look;
    /// by the end of the channel alone it would do it some time later. An error: the channel is lost, so the
    /// broker does it by itself, and may have heard nothing of what was removed last.
    pub async fn end(self) -> Result<(), Failure> {
        let ended = async {
            self.give_back().await?;
            in_time(turn::end(&self.channel)).await?;
            in_time(self.channel.close(200, "OK".into())).await
        };
        let ended = ended.await;
        if ended.is_err() {
            // First what is held, if it is there to be closed: whoever has the next turn is to see all letters.
            let _ = in_time(self.channel.close(200, "OK".into())).await;
            let _ = timeout(END_MAX, turn::end_anew(&self.up.connection)).await;
        }
        ended
    }

    async fn give_back(&self) -> Result<(), Failure> {
        for last in portions(&self.held, &self.takers) {
            in_time(self.give_back_to(last)).await?;
        }
        in_time(self.channel.basic_nack(0, BasicNackOptions { multiple: true, requeue: true })).await
    }

    /// Gives back all up to this one, and returns when the queue has taken them.
    async fn give_back_to(&self, last: u64) -> lapin::Result<()> {
        self.channel.basic_nack(last, BasicNackOptions { multiple: true, requeue: true }).await?;
        if let Some(got) = self.channel.basic_get(QUEUE_DEAD.into(), BasicGetOptions { no_ack: false }).await? {
            let one = BasicNackOptions { multiple: false, requeue: true };
            self.channel.basic_nack(got.delivery.delivery_tag, one).await?;
        }
        Ok(())
    }
}

async fn in_time<T>(answer: impl Future<Output = lapin::Result<T>>) -> Result<T, Failure> {
    match timeout(END_MAX, answer).await {
        Ok(answered) => answered.map_err(|error| cannot(&error)),
        Err(_) => Err(Failure::in_doubt("the broker does not answer")),
    }
}

/// The tags up to which to give back at a time, before all that is left.
fn portions(held: &BTreeSet<u64>, takers: &[u64]) -> Vec<u64> {
    let few = takers.chunks_exact(COMMANDS_MAX);
    let mut tags: Vec<u64> = few.filter_map(|few| held.range(..=few[COMMANDS_MAX - 1]).next_back().copied()).collect();
    // Tags that are not held any more are no names.
    tags.dedup();
    tags
}

fn cannot(error: &lapin::Error) -> Failure {
    fault::failure("cannot look at the dead letters", error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_commands_at_a_time_give_back_what_is_held() {
        let takers: Vec<u64> = (1..=30).map(|taker| taker * 10).collect();
        let all: BTreeSet<u64> = (1..=300).collect();
        assert_eq!(portions(&all, &takers), [120, 240], "the others go with the last command");
        assert_eq!(portions(&all, &takers[..11]), [0; 0]);
        assert_eq!(portions(&BTreeSet::from([7, 250]), &takers), [7], "each tag is held, and named once");
        assert_eq!(portions(&BTreeSet::new(), &takers), [0; 0]);
    }
}
