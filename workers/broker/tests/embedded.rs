//! The queue of one process keeps the contract of the port.

use std::sync::Arc;

use broker::EmbeddedQueue;
use testkit::contract::queue::{Carrier, suite};

#[tokio::test(start_paused = true)]
async fn contract() {
    let queue = Arc::new(EmbeddedQueue::new());
    suite(&Carrier { queue: queue.clone(), dead: queue, stranger: None }).await;
}
