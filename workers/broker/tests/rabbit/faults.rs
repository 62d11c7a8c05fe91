//! The broker fails in every way it has, and the adapter comes back by itself.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use domain::ports::{Content, Queue};
use lapin::BasicProperties;
use schemas::action::Lane;
use schemas::id::Shard;
use schemas::topology::{APP_ID, QUEUE_DEAD, shard_queue};
use testkit::contract::queue::{SHARDS, input, soon};
use tokio::sync::watch;
use tokio::time::Instant;

use super::{Node, Outside, Rabbit, fleet, next, until};

/// A publish that cannot work says so within this time.
const AT_ONCE: Duration = Duration::from_millis(200);

/// Publishes one action after the other until told to stop; returns those that were confirmed.
async fn publish_on_and_on(queue: Arc<dyn Queue>, stop: Arc<AtomicBool>, count: watch::Sender<u64>) -> BTreeSet<u64> {
    let mut confirmed = BTreeSet::new();
    let mut first = 1;
    while !stop.load(Ordering::Relaxed) {
        let batch: Vec<_> = (first..first + 20).map(|n| input(1, n)).collect();
        if queue.publish(&batch).await.is_ok() {
            confirmed.extend(first..first + 20);
            count.send_replace(confirmed.len() as u64);
        } else {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        first += 20;
    }
    confirmed
}

/// Consumes on and on, anew after each loss, and acknowledges what it takes.
async fn consume_on_and_on(queue: Arc<dyn Queue>, received: watch::Sender<BTreeSet<u64>>) {
    loop {
        let mut deliveries = queue.consume(Shard(1), Lane::Work).await.unwrap();
        while let Some(delivery) = deliveries.next().await {
            if let Content::Action(action) = &delivery.content {
                received.send_modify(|seen| {
                    seen.insert(action.session_seq);
                });
            }
            if deliveries.ack(delivery.tag).await.is_err() {
                break;
            }
        }
    }
}

async fn beyond(count: &mut watch::Receiver<u64>, more: u64) {
    let goal = *count.borrow() + more;
    soon("more confirms", count.wait_for(|count| *count >= goal)).await.unwrap();
}

/// Harms the broker while actions flow. Whatever was confirmed must arrive.
async fn nothing_confirmed_is_lost(rabbit: &Rabbit, harm: impl AsyncFn()) {
    let stop = Arc::new(AtomicBool::new(false));
    let (counter, mut count) = watch::channel(0);
    let (receiver, mut received) = watch::channel(BTreeSet::new());
    let publisher = tokio::spawn(publish_on_and_on(rabbit.queue(), stop.clone(), counter));
    let consumer = tokio::spawn(consume_on_and_on(rabbit.queue(), receiver));
    for _ in 0..2 {
        beyond(&mut count, 500).await;
        harm().await;
    }
    beyond(&mut count, 500).await;
    stop.store(true, Ordering::Relaxed);
    let confirmed = soon("the last publish", publisher).await.unwrap();
    let all = received.wait_for(|received| received.is_superset(&confirmed));
    assert!(soon("all that was confirmed", all).await.is_ok());
    consumer.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_broker_loses_nothing_that_it_confirmed() {
    let node = Node::start();
    let rabbit = Rabbit::start(&node.url(), SHARDS).unwrap();
    soon("the broker", rabbit.ready()).await.unwrap();
    nothing_confirmed_is_lost(&rabbit, async || {
        node.kill();
        until("the loss to be noticed", async || rabbit.queue().ping().await.err()).await;
        let started = Instant::now();
        assert!(rabbit.queue().publish(&[input(2, 1)]).await.is_err());
        assert!(started.elapsed() < AT_ONCE, "{:?}", started.elapsed());
        node.start_again();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_connections_and_channels_are_built_anew() {
    let node = Node::start();
    let rabbit = Rabbit::start(&node.url(), SHARDS).unwrap();
    soon("the broker", rabbit.ready()).await.unwrap();
    nothing_confirmed_is_lost(&rabbit, async || drop(node.ctl(&["close_all_connections", "test"]))).await;
    let kill_channels = "[exit(Channel, kill) || Channel <- rabbit_channel:list()].";
    nothing_confirmed_is_lost(&rabbit, async || drop(node.eval(kill_channels))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_comes_later_is_waited_for() {
    let node = Node::start();
    node.kill();
    let rabbit = Rabbit::start(&node.url(), SHARDS).unwrap();
    let started = Instant::now();
    let failure = rabbit.queue().publish(&[input(1, 1)]).await.unwrap_err();
    assert!(started.elapsed() < AT_ONCE && failure.retriable, "{failure}");
    let mut deliveries = rabbit.queue().consume(Shard(1), Lane::Work).await.unwrap();
    assert!(tokio::time::timeout(AT_ONCE, deliveries.next()).await.is_err(), "it waits");
    assert!(rabbit.dead_letters().list(1).await.is_err());
    node.start_again();
    soon("the broker", rabbit.ready()).await.unwrap();
    rabbit.queue().publish(&[input(1, 1)]).await.unwrap();
    // A broker that has just started may drop a consumer whose queue has no leader yet.
    let delivery = until("a delivery", async || {
        let delivery = deliveries.next().await;
        if delivery.is_none() {
            deliveries = rabbit.queue().consume(Shard(1), Lane::Work).await.unwrap();
        }
        delivery
    });
    assert_eq!(delivery.await.content, Content::Action(input(1, 1)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_without_memory_refuses_at_once_and_recovers() {
    let node = Node::start();
    let rabbit = Rabbit::start(&node.url(), SHARDS).unwrap();
    soon("the broker", rabbit.ready()).await.unwrap();
    let mut deliveries = rabbit.queue().consume(Shard(1), Lane::Work).await.unwrap();
    rabbit.queue().publish(&[input(1, 1), input(1, 2)]).await.unwrap();
    let held = next(&mut deliveries).await;
    let senseless = BasicProperties::default().with_app_id(APP_ID.into()).with_type("action.v99".into());
    Outside::connect(&node.url()).await.put_as(&shard_queue(Shard(3), Lane::Work), b"{}", senseless).await;
    rabbit.queue().publish(&[input(3, 1)]).await.unwrap();
    node.ctl(&["set_vm_memory_high_watermark", "0.0001"]);
    // The first one may be on its way when the broker says so.
    let started = Instant::now();
    until("a refusal", async || rabbit.queue().publish(&[input(2, 1)]).await.err()).await;
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    let started = Instant::now();
    for n in 0..10 {
        let failure = rabbit.queue().publish(&[input(2, n)]).await.unwrap_err();
        assert!(failure.message.contains("takes no messages"), "{failure}");
    }
    assert!(rabbit.queue().ping().await.is_err());
    let failure = soon("a refusal", rabbit.tasks().open("late")).await.unwrap_err();
    assert!(failure.message.contains("takes no messages"), "{failure}");
    assert!(started.elapsed() < AT_ONCE, "{:?}", started.elapsed());
    // Consuming goes on. What cannot be buried now can be buried later.
    assert!(deliveries.bury(held.tag, "too early").await.is_err());
    let second = next(&mut deliveries).await;
    assert_eq!(second.content, Content::Action(input(1, 2)));
    deliveries.ack(second.tag).await.unwrap();
    let mut others = rabbit.queue().consume(Shard(3), Lane::Work).await.unwrap();
    let behind = next(&mut others).await;
    assert_eq!(behind.content, Content::Action(input(3, 1)));
    node.ctl(&["set_vm_memory_high_watermark", "0.8"]);
    until("a publish", async || rabbit.queue().publish(&[input(1, 3)]).await.ok()).await;
    soon("a burial", deliveries.bury(held.tag, "in time")).await.unwrap();
    assert_eq!(next(&mut deliveries).await.content, Content::Action(input(1, 3)));
    let dead = rabbit.dead_letters();
    let letters = until("both letters", async || dead.list(10).await.ok().filter(|letters| letters.len() == 2)).await;
    for reason in ["in time", "action.v99"] {
        assert!(letters.iter().any(|letter| letter.reason.contains(reason)), "{letters:?}");
    }
    others.ack(behind.tag).await.expect("its channel was not given up for what it held");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_queue_is_declared_anew() {
    let (rabbit, url) = fleet("deleted").await;
    let outside = Outside::connect(&url).await;
    let queue = shard_queue(Shard(1), Lane::Work);
    let mut deliveries = rabbit.queue().consume(Shard(1), Lane::Work).await.unwrap();
    rabbit.queue().publish(&[input(1, 1)]).await.unwrap();
    next(&mut deliveries).await;
    outside.delete(&queue).await;
    assert!(soon("the end of the consumer", deliveries.next()).await.is_none());
    let failure = rabbit.queue().publish(&[input(1, 2)]).await.unwrap_err();
    assert!(failure.message.contains(&queue), "{failure}");
    // Others are not in the way of it.
    until("a publish", async || rabbit.queue().publish(&[input(1, 3), input(2, 1)]).await.ok()).await;
    let mut deliveries = rabbit.queue().consume(Shard(1), Lane::Work).await.unwrap();
    assert_eq!(next(&mut deliveries).await.content, Content::Action(input(1, 3)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_with_other_arguments_is_named_with_the_remedy() {
    let url = Node::shared().vhost("occupied");
    let outside = Outside::connect(&url).await;
    outside.occupy(QUEUE_DEAD).await;
    let rabbit = Rabbit::start(&url, SHARDS).unwrap();
    let failure = until("the refusal", async || {
        let failure = rabbit.queue().publish(&[input(1, 1)]).await.unwrap_err();
        (!failure.retriable).then_some(failure)
    })
    .await;
    assert!(failure.message.contains(QUEUE_DEAD) && failure.message.contains("delete it"), "{failure}");
    outside.delete(QUEUE_DEAD).await;
    soon("the remedy to help", rabbit.ready()).await.unwrap();
    rabbit.queue().publish(&[input(1, 1)]).await.unwrap();
}
