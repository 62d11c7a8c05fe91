//! The task behind a consumer: one channel, from its opening to its end. Acknowledgements are
//! gathered for a moment, because one frame can stand for many.

use std::sync::Arc;
use std::time::Duration;

use domain::failure::Failure;
use domain::ports::{Content, Delivery};
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicQosOptions, BasicRejectOptions};
use lapin::types::FieldTable;
use lapin::{Channel, ErrorKind};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::acks::{Ack, Acks, Held};
use super::consumer::{Ends, PREFETCH, Source};
use super::express::Line;
use super::hand::Hand;
use super::link::{Link, Up};
use super::message::{self, BODY_BYTES_MAX};
use super::publisher::Publisher;
use super::troubles::Troubles;
use super::{fault, letter, topology};

/// How long acknowledgements are gathered, and how many of them.
const GATHER: Duration = Duration::from_millis(5);
const GATHER_MAX: usize = PREFETCH as usize / 4;
/// An owner that consumes anew at once must not spin.
const REST: Duration = Duration::from_millis(500);
/// How long what is declared is waited for. Where nothing can be published, consuming goes on without it.
const DECLARED_MAX: Duration = Duration::from_secs(2);
const CLOSE_MAX: Duration = Duration::from_secs(5);

pub(super) struct LaneTask {
    pub source: Source,
    pub link: Link,
    pub publisher: Publisher,
    pub troubles: Troubles,
    pub ends: Ends,
    /// Where copies come by express, if any do.
    pub line: Option<Line>,
    /// Its sender goes when a newer consumer takes the place of this one, if any may.
    pub replaced: Option<oneshot::Receiver<()>>,
}

/// Why a channel ends.
enum End {
    /// Its owner is gone, or has another one.
    Left,
    /// The link or its owner tells of it, or there is nothing to tell.
    Lost,
    Trouble(Failure),
}

/// Gives the tag of what the dead letters have.
type Burial = BoxFuture<'static, u64>;

impl LaneTask {
    pub async fn run(mut self) {
        let queue = self.source.queue();
        let up = tokio::select! {
            up = connected(&mut self.link, &mut self.publisher) => up,
            // Nothing was delivered, so the only order is the end.
            _ = self.ends.orders.recv() => None,
            () = replacement(&mut self.replaced) => None,
        };
        let Some(up) = up else { return };
        let end = match self.open(&up.connection).await {
            Ok((channel, consumer)) => {
                self.troubles.clear(&queue);
                let mut hand = Hand::new(self.line.take());
                let end = self.pump(&channel, consumer, &mut hand).await;
                // What was acknowledged meanwhile must not come again.
                while let Ok(order) = self.ends.orders.try_recv() {
                    hand.carry_out(order);
                }
                let _ = tokio::time::timeout(CLOSE_MAX, close(&channel, &mut hand.acks)).await;
                end
            }
            Err(failure) => End::Trouble(failure),
        };
        if let End::Trouble(failure) = end {
            if up.connection.status().connected() {
                self.troubles.note(&queue, &failure);
            }
            tokio::time::sleep(REST).await;
        }
    }

    async fn open(&self, connection: &lapin::Connection) -> Result<(Channel, lapin::Consumer), Failure> {
        let queue = self.source.queue();
        let cannot = |error: lapin::Error| fault::failure(&format!("cannot consume {queue}"), &error);
        let channel = connection.create_channel().await.map_err(cannot)?;
        match self.source {
            Source::Lane(shard, lane) => topology::shard_lane(&channel, shard, lane).await?,
            Source::Ingress => topology::ingress(&channel).await?,
        }
        channel.basic_qos(PREFETCH, BasicQosOptions { global: false }).await.map_err(cannot)?;
        let options = BasicConsumeOptions::default();
        let consumed = channel.basic_consume(queue.as_str().into(), "".into(), options, FieldTable::default());
        let consumer = consumed.await.map_err(cannot)?;
        Ok((channel, consumer))
    }

    async fn pump(&mut self, channel: &Channel, mut consumer: lapin::Consumer, hand: &mut Hand) -> End {
        let mut burials = FuturesUnordered::<Burial>::new();
        let mut orders = Vec::new();
        let mut flush_at = None;
        loop {
            tokio::select! {
                biased;
                () = replacement(&mut self.replaced) => return End::Left,
                count = self.ends.orders.recv_many(&mut orders, usize::from(PREFETCH)) => {
                    if count == 0 {
                        return End::Left;
                    }
                    orders.drain(..).for_each(|order| hand.carry_out(order));
                }
                Some(tag) = burials.next(), if !burials.is_empty() => {
                    hand.acks.settle(tag);
                }
                () = tokio::time::sleep_until(flush_at.unwrap_or_else(Instant::now)), if flush_at.is_some() => {
                    flush_at = None;
                    if let Err(error) = flush(channel, &mut hand.acks).await {
                        return end_of(&error);
                    }
                }
                copy = hand.copy() => {
                    if let Some(delivery) = copy
                        && self.ends.deliveries.try_send(delivery).is_err()
                    {
                        return End::Left;
                    }
                }
                delivery = consumer.next() => match delivery {
                    Some(Ok(delivery)) => match self.take(delivery, hand).await {
                        Ok(burial) => burials.extend(burial),
                        Err(end) => return end,
                    },
                    Some(Err(error)) => return end_of(&error),
                    None => return End::Trouble(Failure::unavailable("the broker ended the consumer")),
                },
            }
            if hand.acks.waiting() >= GATHER_MAX {
                flush_at = Some(Instant::now());
            } else if hand.acks.waiting() > 0 && flush_at.is_none() {
                flush_at = Some(Instant::now() + GATHER);
            }
        }
    }

    /// Hands a delivery on, or returns the burial of one that nobody could use.
    async fn take(&self, delivery: lapin::message::Delivery, hand: &mut Hand) -> Result<Option<Burial>, End> {
        let lapin::message::Delivery { delivery_tag: tag, properties, data, acker, redelivered, .. } = delivery;
        if data.len() > BODY_BYTES_MAX {
            tracing::warn!(
                queue = self.source.queue(),
                bytes = data.len(),
                "a message is too large; it goes to the dead letters"
            );
            // The broker moves it itself, so that it need not travel again.
            let rejected = acker.reject(BasicRejectOptions { requeue: false }).await;
            return rejected.map(|_| None).map_err(|error| end_of(&error));
        }
        match message::read(&properties, &data) {
            Ok(mut content) => {
                if redelivered && let Content::Action(action) = &mut content {
                    // Whoever had it before may have opened the session.
                    action.opens = None;
                }
                hand.acks.deliver(tag, Held { properties, body: data });
                if let Content::Action(action) = &content
                    && !hand.is_first(tag, action)
                {
                    return Ok(None);
                }
                // There is room for all that can be open.
                let handed = self.ends.deliveries.try_send(Delivery { tag, content });
                handed.map(|()| None).map_err(|_| End::Left)
            }
            Err(reason) => {
                tracing::warn!(
                    queue = self.source.queue(),
                    reason,
                    "a message makes no sense; it goes to the dead letters"
                );
                hand.acks.deliver(tag, Held { properties: properties.clone(), body: Vec::new() });
                let letter = letter::write(&self.source.queue(), Held { properties, body: data }, &reason);
                let publisher = self.publisher.clone();
                // Held until the broker takes it: with the end of the channel, all that it holds would come again.
                Ok(Some(Box::pin(async move {
                    publisher.insist(letter).await;
                    tag
                })))
            }
        }
    }
}

/// The connection, once there is one and everything is declared: a queue that somebody is about to make is there
/// by name, and RabbitMQ ends the connection of whoever consumes from it so early.
async fn connected(link: &mut Link, publisher: &mut Publisher) -> Option<Arc<Up>> {
    let up = link.up().await?;
    let _ = tokio::time::timeout(DECLARED_MAX, publisher.ready()).await;
    Some(up)
}

async fn replacement(replaced: &mut Option<oneshot::Receiver<()>>) {
    match replaced {
        Some(sender) => drop(sender.await),
        None => std::future::pending().await,
    }
}

async fn flush(channel: &Channel, acks: &mut Acks) -> lapin::Result<()> {
    for ack in acks.flush() {
        let (tag, multiple) = match ack {
            Ack::UpTo(tag) => (tag, true),
            Ack::One(tag) => (tag, false),
        };
        channel.basic_ack(tag, BasicAckOptions { multiple }).await?;
    }
    Ok(())
}

/// Closes the channel without cancelling its consumer first: a cancelled one keeps its open
/// deliveries while the next consumer already gets what follows them.
async fn close(channel: &Channel, acks: &mut Acks) {
    if flush(channel, acks).await.is_ok() {
        let _ = channel.close(200, "OK".into()).await;
    }
}

fn end_of(error: &lapin::Error) -> End {
    match error.kind() {
        ErrorKind::ProtocolError(_) if error.is_amqp_soft_error() => {
            End::Trouble(fault::failure("the broker closed the channel", error))
        }
        _ => End::Lost,
    }
}
