//! Live notices of commits, worker to gateway. A notice is a hint: it may be lost, and a stream
//! then reads the journal. What it tells of is committed.

use std::sync::Arc;

use async_trait::async_trait;
use schemas::id::SessionKey;
use schemas::record::Entry;

/// One commit of one session.
#[derive(Debug, Clone)]
pub struct Notice {
    pub key: SessionKey,
    /// Offset of the last event that is committed.
    pub last_offset: u64,
    /// What was committed; within one process only. Without it, the journal has it.
    pub entry: Option<Arc<Entry>>,
}

impl Notice {
    pub fn of(key: SessionKey, entry: Arc<Entry>) -> Self {
        Self { key, last_offset: entry.head.next_offset.saturating_sub(1), entry: Some(entry) }
    }
}

#[async_trait]
pub trait Live: Send + Sync {
    /// Publishes notices of commits. Never blocks, never fails loudly.
    fn publish(&self, notices: Vec<Notice>);

    /// Notices from now on, of one session.
    fn subscribe(&self, key: &SessionKey) -> Box<dyn Subscription>;
}

#[async_trait]
pub trait Subscription: Send {
    /// The next notice. `None`: some were lost or the source is gone; read the journal and
    /// subscribe again. Cancel safe.
    async fn next(&mut self) -> Option<Notice>;
}
