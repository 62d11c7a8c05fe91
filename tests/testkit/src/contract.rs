//! Contract suites: what every implementation of a storage port must do, whatever it is made of.
//! One suite per port runs on the fakes and on each database.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use domain::ports::{
    Commits, Conversations, Definitions, Journal, Leases, Ledger, Memories, MemoryTail, Operations, Sessions, Tokens,
    TranscriptTail,
};

pub mod archive;
pub mod build;
pub mod commits;
pub mod conversations;
pub mod definitions;
pub mod engine_store;
pub mod journal;
pub mod leases;
pub mod ledger;
pub mod look;
pub mod memories;
pub mod operations;
pub mod queue;
pub mod sessions;
pub mod talk;
pub mod tokens;
pub mod transcripts;
pub mod words;

/// Number of shards of the store under test.
pub const SHARDS: u16 = 4;

/// The ports of one fresh, empty store with [`SHARDS`] shards.
#[derive(Clone)]
pub struct Ports {
    pub ledger: Arc<dyn Ledger>,
    pub sessions: Arc<dyn Sessions>,
    pub commits: Arc<dyn Commits>,
    pub journal: Arc<dyn Journal>,
    pub leases: Arc<dyn Leases>,
    pub tokens: Arc<dyn Tokens>,
    pub definitions: Arc<dyn Definitions>,
    pub conversations: Arc<dyn Conversations>,
    pub operations: Arc<dyn Operations>,
    pub memories: Arc<dyn Memories>,
    /// Lets so many milliseconds pass on the store's clock; without it, they pass by themselves.
    pub skip: Option<Arc<dyn Fn(u64) + Send + Sync>>,
    pub tail: Arc<dyn MemoryTail>,
    pub transcripts: Arc<dyn TranscriptTail>,
    /// What must live as long as the store: a temporary directory, say.
    pub guard: Option<Arc<dyn Any + Send + Sync>>,
}

impl Ports {
    /// All ports of one value.
    pub fn of<S>(store: S) -> Self
    where
        S: Ledger
            + Sessions
            + Commits
            + Journal
            + Leases
            + Tokens
            + Definitions
            + Conversations
            + Operations
            + MemoryTail
            + TranscriptTail
            + 'static,
    {
        let store = Arc::new(store);
        Self {
            ledger: store.clone(),
            sessions: store.clone(),
            commits: store.clone(),
            journal: store.clone(),
            leases: store.clone(),
            tokens: store.clone(),
            definitions: store.clone(),
            conversations: store.clone(),
            operations: store.clone(),
            memories: store.clone(),
            tail: store.clone(),
            transcripts: store,
            skip: None,
            guard: None,
        }
    }

    /// Longer than some statements take on a busy machine, and no longer than a test may sleep.
    pub fn while_ms(&self) -> u64 {
        if self.skip.is_some() { 60_000 } else { 1_500 }
    }

    /// Lets time pass for the store.
    pub async fn pass(&self, ms: u64) {
        match &self.skip {
            Some(skip) => skip(ms),
            // A database's own clock cannot be moved; that of a test may be paused.
            None => tokio::time::sleep(Duration::from_millis(ms)).await,
        }
    }
}

/// Runs every suite.
pub async fn all(make: impl AsyncFn() -> Ports) {
    ledger::suite(&make).await;
    sessions::suite(&make).await;
    commits::suite(&make).await;
    journal::suite(&make).await;
    leases::suite(&make).await;
    tokens::suite(&make).await;
    definitions::suite(&make).await;
    conversations::suite(&make).await;
    look::suite(&make).await;
    operations::suite(&make).await;
    talk::suite(&make).await;
    transcripts::suite(&make).await;
    memories::suite(&make).await;
}
