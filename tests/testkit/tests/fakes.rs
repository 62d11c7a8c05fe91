//! The fakes keep the contracts that the adapters keep: what a simulation proves on them holds.

use std::sync::Arc;

use async_trait::async_trait;
use testkit::contract::queue::Carrier;
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
