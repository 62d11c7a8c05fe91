//! The gateway's side: one queue per process, bound to the parts that somebody watches. A part is
//! unbound only some time after its last subscription, because streams subscribe anew all the time.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::failure::Failure;
use domain::ports::{Live, Notice};
use domain::shard::event_part;
use futures::StreamExt;
use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicQosOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{Channel, Consumer};
use schemas::hint::Hints;
use schemas::topology::{EXCHANGE_EVENTS, event_key};
use tokio::time::Instant;

use super::super::link::{Link, Up};
use super::super::troubles::Troubles;
use super::super::{backoff, fault, topology};
use super::interest::Watched;
use crate::embedded::EmbeddedLive;

/// Messages that wait on the broker for a slow gateway; the oldest go first.
const LENGTH_MAX: i64 = 10_000;
const PREFETCH: u16 = 512;
const ACK_EVERY: usize = PREFETCH as usize / 4;
/// How long a part stays bound without subscriptions.
const LINGER: Duration = Duration::from_secs(30);

pub(super) async fn run(mut link: Link, local: EmbeddedLive, mut watched: Watched, troubles: Troubles) {
    let mut failures = 0;
    // A process without streams has no queue.
    while watched.any().await {
        let up = tokio::select! {
            up = link.up() => up,
            () = watched.end() => None,
        };
        let Some(up) = up else { return };
        let failure = match Ear::open(&up, local.clone()).await {
            Ok(mut ear) => {
                failures = 0;
                troubles.clear("live notices");
                match ear.listen(&mut watched).await {
                    Ok(()) => return,
                    Err(failure) => failure,
                }
            }
            Err(failure) => failure,
        };
        if up.connection.status().connected() {
            troubles.note("live notices", &failure);
        }
        failures += 1;
        tokio::time::sleep(backoff::after(failures)).await;
    }
}

struct Ear {
    local: EmbeddedLive,
    channel: Channel,
    consumer: Consumer,
    queue: ShortString,
    /// The bound parts, and since when nobody wants them.
    bound: BTreeMap<u16, Option<Instant>>,
}

fn cannot(error: lapin::Error) -> Failure {
    fault::failure("cannot listen for live notices", &error)
}

impl Ear {
    async fn open(up: &Up, local: EmbeddedLive) -> Result<Self, Failure> {
        let channel = up.connection.create_channel().await.map_err(cannot)?;
        topology::events(&channel).await?;
        let options = QueueDeclareOptions { exclusive: true, auto_delete: true, ..QueueDeclareOptions::default() };
        let mut arguments = FieldTable::default();
        arguments.insert("x-max-length".into(), AMQPValue::LongLongInt(LENGTH_MAX));
        let queue = channel.queue_declare("".into(), options, arguments).await.map_err(cannot)?.name().clone();
        channel.basic_qos(PREFETCH, BasicQosOptions { global: false }).await.map_err(cannot)?;
        let options = BasicConsumeOptions { exclusive: true, ..BasicConsumeOptions::default() };
        let consumer = channel.basic_consume(queue.clone(), "".into(), options, FieldTable::default());
        let consumer = consumer.await.map_err(cannot)?;
        Ok(Self { local, channel, consumer, queue, bound: BTreeMap::new() })
    }

    /// `Ok` when the process ends.
    async fn listen(&mut self, watched: &mut Watched) -> Result<(), Failure> {
        self.bind(watched).await?;
        let mut tidy = tokio::time::interval(LINGER / 3);
        let mut heard = 0;
        loop {
            tokio::select! {
                changed = watched.changed() => {
                    if !changed {
                        return Ok(());
                    }
                    self.bind(watched).await?;
                }
                _ = tidy.tick() => self.unbind().await?,
                delivery = self.consumer.next() => {
                    let gone = || Failure::unavailable("the broker ended the queue of live notices");
                    let delivery = delivery.ok_or_else(gone)?.map_err(cannot)?;
                    self.pass_on(&delivery.data);
                    heard += 1;
                    if heard % ACK_EVERY == 0 {
                        let acked = self.channel.basic_ack(delivery.delivery_tag, BasicAckOptions { multiple: true });
                        acked.await.map_err(cannot)?;
                    }
                }
            }
        }
    }

    fn pass_on(&self, body: &[u8]) {
        let Ok(hints) = serde_json::from_slice::<Hints>(body) else {
            tracing::debug!("a message on the exchange of live notices is none");
            return;
        };
        let notice = |hint: schemas::hint::Hint| Notice { key: hint.key, last_offset: hint.last_offset, entry: None };
        self.local.publish(hints.sessions.into_iter().map(notice).collect());
    }

    async fn bind(&mut self, watched: &mut Watched) -> Result<(), Failure> {
        let wanted = watched.parts();
        for (part, unwanted_since) in &mut self.bound {
            if wanted.contains(part) {
                *unwanted_since = None;
            } else {
                unwanted_since.get_or_insert_with(Instant::now);
            }
        }
        for part in wanted {
            if self.bound.contains_key(&part) {
                continue;
            }
            let (exchange, key) = (EXCHANGE_EVENTS.into(), event_key(part).into());
            let options = QueueBindOptions::default();
            let bound = self.channel.queue_bind(self.queue.clone(), exchange, key, options, FieldTable::default());
            bound.await.map_err(cannot)?;
            self.bound.insert(part, None);
            // What was committed before this moment was told to nobody here.
            self.local.interrupt(|key| event_part(key) == part);
        }
        Ok(())
    }

    async fn unbind(&mut self) -> Result<(), Failure> {
        let idle = |since: &Option<Instant>| since.is_some_and(|since| since.elapsed() >= LINGER);
        let parts: Vec<u16> = self.bound.iter().filter(|(_, since)| idle(since)).map(|(part, _)| *part).collect();
        for part in parts {
            let (exchange, key) = (EXCHANGE_EVENTS.into(), event_key(part).into());
            let unbound = self.channel.queue_unbind(self.queue.clone(), exchange, key, FieldTable::default());
            unbound.await.map_err(cannot)?;
            self.bound.remove(&part);
        }
        Ok(())
    }
}
