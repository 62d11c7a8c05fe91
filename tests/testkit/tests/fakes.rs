//! The fakes keep the contracts that the adapters keep: what a simulation proves on them holds.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domain::ports::{Content, DeadLetters, Queue};
use schemas::action::Lane;
use schemas::id::Shard;
use testkit::contract::queue::{Carrier, input};
use testkit::contract::{self, Ports, SHARDS};
use testkit::fake::{FaultyQueue, MemStore, SimClock};

async fn ports() -> Ports {
    Ports::of(MemStore::new(SHARDS, Arc::new(SimClock::new())))
}

#[tokio::test(start_paused = true)]
async fn ledger() {
    contract::ledger::suite(&ports).await;
}

#[tokio::test(start_paused = true)]
async fn sessions() {
    contract::sessions::suite(&ports).await;
}

#[tokio::test(start_paused = true)]
async fn commits() {
    contract::commits::suite(&ports).await;
}

#[tokio::test(start_paused = true)]
async fn journal() {
    contract::journal::suite(&ports).await;
}

#[tokio::test(start_paused = true)]
async fn leases() {
    contract::leases::suite(&ports).await;
}

#[tokio::test(start_paused = true)]
async fn tokens() {
    contract::tokens::suite(&ports).await;
}

#[tokio::test(start_paused = true)]
async fn definitions() {
    contract::definitions::suite(&ports).await;
}

#[tokio::test(start_paused = true)]
async fn conversations() {
    contract::conversations::suite(&ports).await;
    contract::look::suite(&ports).await;
}

#[tokio::test(start_paused = true)]
async fn operations() {
    contract::operations::suite(&ports).await;
}

#[tokio::test(start_paused = true)]
async fn talk() {
    contract::talk::suite(&ports).await;
}

#[tokio::test(start_paused = true)]
async fn transcripts() {
    contract::transcripts::suite(&ports).await;
}

#[tokio::test(start_paused = true)]
async fn memories() {
    contract::memories::suite(&ports).await;
}

struct Anybody(FaultyQueue);

#[async_trait]
impl contract::queue::Stranger for Anybody {
    async fn put(&self, queue: &str, body: &[u8]) {
        self.0.put(queue, body.to_vec());
    }
}

#[tokio::test(start_paused = true)]
async fn queue() {
    let queue = FaultyQueue::reliable();
    let carrier = Carrier {
        queue: Arc::new(queue.clone()),
        dead: Arc::new(queue.clone()),
        stranger: Some(Arc::new(Anybody(queue))),
    };
    contract::queue::suite(&carrier).await;
}

/// As RabbitMQ does it without memory or disk: `workers/broker/tests/rabbit/faults.rs`.
#[tokio::test(start_paused = true)]
async fn in_an_alarm_the_queue_takes_nothing_and_delivers_on() {
    let queue = FaultyQueue::reliable();
    queue.publish(&[input(0, 1), input(0, 2)]).await.expect("published");
    let mut deliveries = queue.consume(Shard(0), Lane::Work).await.expect("a consumer");
    queue.alarm(Duration::from_secs(10));
    let first = deliveries.next().await.expect("a delivery");
    assert!(queue.ping().await.is_err() && queue.publish(&[input(0, 3)]).await.is_err());
    assert!(deliveries.bury(first.tag, "too early").await.is_err());
    let second = deliveries.next().await.expect("a delivery");
    assert_eq!(second.content, Content::Action(input(0, 2)));
    deliveries.ack(second.tag).await.expect("the channel is open");
    tokio::time::sleep(Duration::from_secs(10)).await;
    queue.ping().await.expect("it is over");
    deliveries.bury(first.tag, "in time").await.expect("it is held still");
    let letters = queue.list(10).await.expect("a look");
    assert_eq!(letters.into_iter().map(|letter| letter.reason).collect::<Vec<_>>(), ["in time"]);
}
