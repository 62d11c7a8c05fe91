//! The stores that the groups of tests of SPEC 1.33 run on.

use std::sync::Arc;

use engine::{ConversationStore, MemoryStore};
use store::SqliteConversations;
use tempfile::TempDir;

/// Once in memory, once in a file; each time on a store of its own, without anything in it.
pub async fn on_each_store(test: impl AsyncFn(Arc<dyn ConversationStore>)) {
    test(Arc::new(MemoryStore::new())).await;
    let directory = TempDir::new().expect("a directory");
    let durable = SqliteConversations::open(directory.path().join("talks.db")).await.expect("the file opens");
    test(Arc::new(durable.clone())).await;
    durable.close().await;
}
