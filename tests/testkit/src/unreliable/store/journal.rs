//! The journal through faults.

use async_trait::async_trait;
use domain::effect::EffectRow;
use domain::failure::Failure;
use domain::ports::{Journal, JournalLag};
use schemas::id::{Namespace, SessionId, SessionKey, Shard};
use schemas::record::JournalRow;

use crate::unreliable::{Port, Unreliable};

#[async_trait]
impl<P: Journal + ?Sized> Journal for Unreliable<P> {
    async fn latest(&self, key: &SessionKey) -> Result<Option<JournalRow>, Failure> {
        self.faults.call(Port::Journal, "journal.latest", self.inner.latest(key)).await
    }

    async fn entries(&self, key: &SessionKey, after_offset: u64, limit: usize) -> Result<Vec<JournalRow>, Failure> {
        self.faults.call(Port::Journal, "journal.entries", self.inner.entries(key, after_offset, limit)).await
    }

    async fn entries_back(
        &self,
        key: &SessionKey,
        before_offset: u64,
        limit: usize,
    ) -> Result<Vec<JournalRow>, Failure> {
        let found = self.inner.entries_back(key, before_offset, limit);
        self.faults.call(Port::Journal, "journal.entries_back", found).await
    }

    async fn holding(&self, namespace: &Namespace, sessions: &[SessionId]) -> Result<Vec<SessionId>, Failure> {
        self.faults.call(Port::Journal, "journal.holding", self.inner.holding(namespace, sessions)).await
    }

    async fn above(&self, shard: Shard, after: u64, limit: usize, bytes: usize) -> Result<Vec<JournalRow>, Failure> {
        self.faults.call(Port::Journal, "journal.above", self.inner.above(shard, after, limit, bytes)).await
    }

    async fn lag(&self) -> Result<Vec<JournalLag>, Failure> {
        self.faults.call(Port::Journal, "journal.lag", self.inner.lag()).await
    }

    async fn mark_archived(&self, shard: Shard, seq: u64) -> Result<(), Failure> {
        self.faults.call(Port::Journal, "journal.mark_archived", self.inner.mark_archived(shard, seq)).await
    }

    async fn trim(&self, older_than_ms: u64, before_ms: i64, limit: usize) -> Result<u64, Failure> {
        self.faults.call(Port::Journal, "journal.trim", self.inner.trim(older_than_ms, before_ms, limit)).await
    }

    async fn open_effects(&self, key: &SessionKey) -> Result<Vec<EffectRow>, Failure> {
        self.faults.call(Port::Journal, "journal.open_effects", self.inner.open_effects(key)).await
    }
}
