//! The consuming side: one queue per process, bound to the lanes that are consumed here.

use std::collections::BTreeSet;

use domain::failure::Failure;
use futures::StreamExt;
use lapin::options::{BasicConsumeOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{Channel, Consumer};
use schemas::topology::EXCHANGE_EVENTS;

use super::super::acks::Held;
use super::super::link::{Link, Up};
use super::super::troubles::Troubles;
use super::super::{backoff, fault, topology};
use super::lines::Watched;

/// Copies that wait on the broker for a slow process; the oldest go first.
const LENGTH_MAX: i64 = 1_000;

pub(super) async fn run(mut link: Link, mut watched: Watched, troubles: Troubles) {
    let mut failures = 0;
    // A process that consumes nothing has no queue.
    while watched.any().await {
        let up = tokio::select! {
            up = link.up() => up,
            () = watched.end() => None,
        };
        let Some(up) = up else { return };
        let failure = match Ear::open(&up).await {
            Ok(mut ear) => {
                failures = 0;
                troubles.clear("actions by express");
                match ear.listen(&mut watched).await {
                    Ok(()) => return,
                    Err(failure) => failure,
                }
            }
            Err(failure) => failure,
        };
        if up.connection.status().connected() {
            troubles.note("actions by express", &failure);
        }
        failures += 1;
        tokio::time::sleep(backoff::after(failures)).await;
    }
}

struct Ear {
    channel: Channel,
    consumer: Consumer,
    queue: ShortString,
    bound: BTreeSet<String>,
}

fn cannot(error: lapin::Error) -> Failure {
    fault::failure("cannot listen for actions by express", &error)
}

impl Ear {
    async fn open(up: &Up) -> Result<Self, Failure> {
        let channel = up.connection.create_channel().await.map_err(cannot)?;
        topology::events(&channel).await?;
        let options = QueueDeclareOptions { exclusive: true, auto_delete: true, ..QueueDeclareOptions::default() };
        let mut arguments = FieldTable::default();
        arguments.insert("x-max-length".into(), AMQPValue::LongLongInt(LENGTH_MAX));
        let queue = channel.queue_declare("".into(), options, arguments).await.map_err(cannot)?.name().clone();
        let options = BasicConsumeOptions { exclusive: true, no_ack: true, ..BasicConsumeOptions::default() };
        let consumer = channel.basic_consume(queue.clone(), "".into(), options, FieldTable::default());
        let consumer = consumer.await.map_err(cannot)?;
        Ok(Self { channel, consumer, queue, bound: BTreeSet::new() })
    }

    /// `Ok` when the process ends.
    async fn listen(&mut self, watched: &mut Watched) -> Result<(), Failure> {
        self.bind(watched).await?;
        loop {
            tokio::select! {
                biased;
                delivery = self.consumer.next() => {
                    let gone = || Failure::unavailable("the broker ended the queue of actions by express");
                    let delivery = delivery.ok_or_else(gone)?.map_err(cannot)?;
                    let copy = Held { properties: delivery.properties, body: delivery.data };
                    watched.hand_over(delivery.routing_key.as_str(), copy);
                }
                changed = watched.changed() => {
                    if !changed {
                        return Ok(());
                    }
                    self.bind(watched).await?;
                }
            }
        }
    }

    async fn bind(&mut self, watched: &mut Watched) -> Result<(), Failure> {
        let wanted = watched.queues();
        for lane in wanted.difference(&self.bound) {
            let (exchange, key) = (EXCHANGE_EVENTS.into(), lane.as_str().into());
            let options = QueueBindOptions::default();
            let bound = self.channel.queue_bind(self.queue.clone(), exchange, key, options, FieldTable::default());
            bound.await.map_err(cannot)?;
        }
        for lane in self.bound.difference(&wanted) {
            let (exchange, key) = (EXCHANGE_EVENTS.into(), lane.as_str().into());
            let unbound = self.channel.queue_unbind(self.queue.clone(), exchange, key, FieldTable::default());
            unbound.await.map_err(cannot)?;
        }
        self.bound = wanted;
        Ok(())
    }
}
