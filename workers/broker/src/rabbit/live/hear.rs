//! The gateway's side: one queue per process, bound to the topics that somebody watches. A topic is
//! unbound only some time after its last subscription, because streams subscribe anew all the time.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::failure::Failure;
use domain::ports::{Live, Notice};
use domain::shard::{event_part, news_part};
use futures::StreamExt;
use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicQosOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{Channel, Consumer};
use schemas::hint::Hints;
use schemas::topology::{EXCHANGE_EVENTS, TYPE_NEWS};
use tokio::time::Instant;

use super::super::link::{Link, Up};
use super::super::troubles::Troubles;
use super::super::{backoff, fault, topology};
use super::interest::{Topic, Watched};
use super::news::Bulletin;
use crate::embedded::EmbeddedLive;

/// Messages that wait on the broker for a slow gateway; the oldest go first.
const LENGTH_MAX: i64 = 10_000;
const PREFETCH: u16 = 512;
const ACK_EVERY: usize = PREFETCH as usize / 4;
/// How long a topic stays bound without subscriptions.
const LINGER: Duration = Duration::from_secs(30);

/// Who hears.
#[derive(Clone)]
pub(super) struct Ears {
    pub local: EmbeddedLive,
    /// Its own news are known already.
    pub this_process: u64,
}

pub(super) async fn run(mut link: Link, ears: Ears, mut watched: Watched, troubles: Troubles) {
    let mut failures = 0;
    // A process without streams has no queue.
    while watched.any().await {
        let up = tokio::select! {
            up = link.up() => up,
            () = watched.end() => None,
        };
        let Some(up) = up else { return };
        let failure = match Ear::open(&up, ears.clone()).await {
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
    ears: Ears,
    channel: Channel,
    consumer: Consumer,
    queue: ShortString,
    /// The bound topics, and since when nobody wants them.
    bound: BTreeMap<Topic, Option<Instant>>,
}

fn cannot(error: lapin::Error) -> Failure {
    fault::failure("cannot listen for live notices", &error)
}

impl Ear {
    async fn open(up: &Up, ears: Ears) -> Result<Self, Failure> {
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
        Ok(Self { ears, channel, consumer, queue, bound: BTreeMap::new() })
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
                    match delivery.properties.kind().as_ref().map(|kind| kind.as_str()) {
                        Some(TYPE_NEWS) => self.pass_news_on(&delivery.data),
                        _ => self.pass_on(&delivery.data),
                    }
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
        self.ears.local.publish(hints.sessions.into_iter().map(notice).collect());
    }

    fn pass_news_on(&self, body: &[u8]) {
        let Ok((sender, items)) = serde_json::from_slice::<Bulletin>(body) else {
            tracing::debug!("a message on the exchange of live notices is no news");
            return;
        };
        if sender == self.ears.this_process {
            return;
        }
        for (key, news) in items {
            match news {
                Some(news) => self.ears.local.tell(&key, news),
                None => self.ears.local.silence(|listened| *listened == key),
            }
        }
    }

    async fn bind(&mut self, watched: &mut Watched) -> Result<(), Failure> {
        let wanted = watched.topics();
        for (topic, unwanted_since) in &mut self.bound {
            if wanted.contains(topic) {
                *unwanted_since = None;
            } else {
                unwanted_since.get_or_insert_with(Instant::now);
            }
        }
        for topic in wanted {
            if self.bound.contains_key(&topic) {
                continue;
            }
            let (exchange, key) = (EXCHANGE_EVENTS.into(), topic.routing_key().into());
            let options = QueueBindOptions::default();
            let bound = self.channel.queue_bind(self.queue.clone(), exchange, key, options, FieldTable::default());
            bound.await.map_err(cannot)?;
            self.bound.insert(topic, None);
            // What was committed or said before this moment was told to nobody here.
            match topic {
                Topic::Hints(part) => self.ears.local.interrupt(|key| event_part(key) == part),
                Topic::News(part) => {
                    self.ears.local.silence(|key| news_part(&key.namespace, &key.conversation_id) == part);
                }
            }
        }
        Ok(())
    }

    async fn unbind(&mut self) -> Result<(), Failure> {
        let idle = |since: &Option<Instant>| since.is_some_and(|since| since.elapsed() >= LINGER);
        let topics: Vec<Topic> = self.bound.iter().filter(|(_, since)| idle(since)).map(|(topic, _)| *topic).collect();
        for topic in topics {
            let (exchange, key) = (EXCHANGE_EVENTS.into(), topic.routing_key().into());
            let unbound = self.channel.queue_unbind(self.queue.clone(), exchange, key, FieldTable::default());
            unbound.await.map_err(cannot)?;
            self.bound.remove(&topic);
        }
        Ok(())
    }
}
