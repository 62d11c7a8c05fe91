//! What is declared on the broker, and with which arguments: the same on RabbitMQ 3.10 and 4.x, so
//! that a rolling upgrade of either side never meets a refusal.

use domain::failure::Failure;
use lapin::options::{ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Channel, ExchangeKind};
use schemas::action::Lane;
use schemas::id::Shard;
use schemas::topology::{EXCHANGE_ACTIONS, EXCHANGE_EVENTS, QUEUE_DEAD, QUEUE_INGRESS, shard_queue, task_queue};

use super::fault;

/// Returns after which a message is dead. Never absent and never -1: without a limit 3.10 returns
/// messages to the end of the queue, and with -1 it drops them on their first return. A channel's
/// loss counts for all that it held, so the limit is far above any real number of losses.
const DELIVERY_LIMIT: i64 = 1_000;
/// Looking at the dead letters counts as returning them.
const DEAD_DELIVERY_LIMIT: i64 = 1_000_000_000;
/// Beyond this, publishers are refused and the ledger keeps the actions.
const LENGTH_MAX: i64 = 1_000_000;
/// Beyond this, the oldest dead letters go.
const DEAD_LENGTH_MAX: i64 = 1_000_000;

pub(super) async fn declare_all(channel: &Channel, shards: u16) -> Result<(), Failure> {
    for (name, kind) in exchanges() {
        exchange(channel, name, kind).await?;
    }
    for (name, arguments) in queues(shards) {
        queue(channel, &name, arguments).await?;
        // The broker brings dead letters to their queue by its name.
        if name != QUEUE_DEAD {
            bind(channel, &name).await?;
        }
    }
    Ok(())
}

/// The exchanges of a fleet.
pub(super) fn exchanges() -> [(&'static str, ExchangeKind); 2] {
    [(EXCHANGE_ACTIONS, ExchangeKind::Direct), (EXCHANGE_EVENTS, ExchangeKind::Topic)]
}

/// The queues of a fleet with so many shards, and their arguments.
pub(super) fn queues(shards: u16) -> Vec<(String, FieldTable)> {
    let mut queues = vec![(QUEUE_DEAD.to_owned(), dead_arguments()), (QUEUE_INGRESS.to_owned(), arguments())];
    for shard in 0..shards {
        queues.extend(Lane::ALL.map(|lane| (shard_queue(Shard(shard), lane), lane_arguments())));
    }
    queues
}

/// The queues of tasks for workers of others, and their arguments.
pub(super) fn task_queues(pools: &[String]) -> Vec<(String, FieldTable)> {
    pools.iter().map(|pool| (task_queue(pool), arguments())).collect()
}

pub(super) async fn events(channel: &Channel) -> Result<(), Failure> {
    exchange(channel, EXCHANGE_EVENTS, ExchangeKind::Topic).await
}

pub(super) async fn ingress(channel: &Channel) -> Result<(), Failure> {
    queue(channel, QUEUE_INGRESS, arguments()).await?;
    bind(channel, QUEUE_INGRESS).await
}

/// A queue of tasks for workers of others; they take from it, and nothing else is bound to it.
pub(super) async fn tasks(channel: &Channel, name: &str) -> Result<(), Failure> {
    queue(channel, name, arguments()).await
}

pub(super) async fn shard_lane(channel: &Channel, shard: Shard, lane: Lane) -> Result<(), Failure> {
    let name = shard_queue(shard, lane);
    queue(channel, &name, lane_arguments()).await?;
    bind(channel, &name).await
}

/// Of the queues of a shard.
fn lane_arguments() -> FieldTable {
    let mut arguments = arguments();
    arguments.insert("x-single-active-consumer".into(), AMQPValue::Boolean(true));
    arguments
}

/// Of the queues that are consumed. What dies goes to the dead letters, and is not dropped here
/// before it is safe there.
fn arguments() -> FieldTable {
    let mut arguments = quorum(DELIVERY_LIMIT, LENGTH_MAX);
    let texts = [
        ("x-overflow", "reject-publish"),
        ("x-dead-letter-exchange", ""),
        ("x-dead-letter-routing-key", QUEUE_DEAD),
        ("x-dead-letter-strategy", "at-least-once"),
    ];
    for (name, value) in texts {
        arguments.insert(name.into(), AMQPValue::LongString(value.into()));
    }
    arguments
}

fn dead_arguments() -> FieldTable {
    quorum(DEAD_DELIVERY_LIMIT, DEAD_LENGTH_MAX)
}

fn quorum(delivery_limit: i64, length_max: i64) -> FieldTable {
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), AMQPValue::LongString("quorum".into()));
    arguments.insert("x-delivery-limit".into(), AMQPValue::LongLongInt(delivery_limit));
    arguments.insert("x-max-length".into(), AMQPValue::LongLongInt(length_max));
    arguments
}

/// Whether there is such an exchange. The broker ends the channel if there is none.
pub(super) async fn has_exchange(channel: &Channel, name: &str, kind: ExchangeKind) -> Result<bool, Failure> {
    let options = ExchangeDeclareOptions { passive: true, ..ExchangeDeclareOptions::default() };
    match channel.exchange_declare(name.into(), kind, options, FieldTable::default()).await {
        Ok(()) => Ok(true),
        Err(error) if fault::is_absent(&error) => Ok(false),
        Err(error) => Err(fault::failure(&format!("cannot look at {name}"), &error)),
    }
}

/// The messages that wait in a queue; `None`: there is no such queue, and the broker has ended the channel.
pub(super) async fn waiting(channel: &Channel, name: &str) -> Result<Option<u32>, Failure> {
    let options = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
    match channel.queue_declare(name.into(), options, FieldTable::default()).await {
        Ok(queue) => Ok(Some(queue.message_count())),
        Err(error) if fault::is_absent(&error) => Ok(None),
        Err(error) => Err(fault::failure(&format!("cannot look at {name}"), &error)),
    }
}

pub(super) async fn exchange(channel: &Channel, name: &str, kind: ExchangeKind) -> Result<(), Failure> {
    let options = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
    let declared = channel.exchange_declare(name.into(), kind, options, FieldTable::default()).await;
    declared.map_err(|error| fault::declaring(name, &error))
}

pub(super) async fn queue(channel: &Channel, name: &str, arguments: FieldTable) -> Result<(), Failure> {
    let options = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
    let declared = channel.queue_declare(name.into(), options, arguments).await;
    declared.map(drop).map_err(|error| fault::declaring(name, &error))
}

async fn bind(channel: &Channel, name: &str) -> Result<(), Failure> {
    let bound = channel.queue_bind(
        name.into(),
        EXCHANGE_ACTIONS.into(),
        name.into(),
        QueueBindOptions::default(),
        FieldTable::default(),
    );
    bound.await.map_err(|error| fault::failure(&format!("cannot bind {name}"), &error))
}
