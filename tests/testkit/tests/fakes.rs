//! The fakes keep the contracts that the adapters keep: what a simulation proves on them holds.

use std::sync::Arc;

use testkit::contract::{self, Ports, SHARDS};
use testkit::fake::{MemStore, SimClock};

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
