//! The ledger through faults.

use async_trait::async_trait;
use domain::failure::Failure;
use domain::ports::{Ledger, LedgerStats, Pending, Verdict};
use schemas::action::{Action, ActionView, Lane, NewAction};
use schemas::id::{ActionId, Namespace, SessionId, SessionKey, Shard};

use crate::unreliable::{Port, Unreliable};

#[async_trait]
impl<P: Ledger + ?Sized> Ledger for Unreliable<P> {
    async fn accept(&self, actions: Vec<NewAction>) -> Result<Vec<Verdict>, Failure> {
        self.faults.call(Port::Ledger, "ledger.accept", self.inner.accept(actions)).await
    }

    async fn action(&self, namespace: &Namespace, id: &ActionId) -> Result<Option<ActionView>, Failure> {
        self.faults.call(Port::Ledger, "ledger.action", self.inner.action(namespace, id)).await
    }

    async fn pending(&self, key: &SessionKey, lane: Lane, after: u64, limit: usize) -> Result<Pending, Failure> {
        self.faults.call(Port::Ledger, "ledger.pending", self.inner.pending(key, lane, after, limit)).await
    }

    async fn pending_count(&self, key: &SessionKey) -> Result<u64, Failure> {
        self.faults.call(Port::Ledger, "ledger.pending_count", self.inner.pending_count(key)).await
    }

    async fn sessions_with_pending(
        &self,
        shard: Shard,
        older_than_ms: u64,
        after: Option<(Namespace, SessionId)>,
        limit: usize,
    ) -> Result<Vec<SessionKey>, Failure> {
        let found = self.inner.sessions_with_pending(shard, older_than_ms, after, limit);
        self.faults.call(Port::Ledger, "ledger.sessions_with_pending", found).await
    }

    async fn mark_published(&self, actions: &[(Namespace, ActionId)]) -> Result<(), Failure> {
        self.faults.call(Port::Ledger, "ledger.mark_published", self.inner.mark_published(actions)).await
    }

    async fn unpublished(&self, older_than_ms: u64, limit: usize) -> Result<Vec<Action>, Failure> {
        self.faults.call(Port::Ledger, "ledger.unpublished", self.inner.unpublished(older_than_ms, limit)).await
    }

    async fn forget_processed(&self, older_than_ms: u64, limit: usize) -> Result<u64, Failure> {
        let forgotten = self.inner.forget_processed(older_than_ms, limit);
        self.faults.call(Port::Ledger, "ledger.forget_processed", forgotten).await
    }

    async fn stats(&self) -> Result<LedgerStats, Failure> {
        self.faults.call(Port::Ledger, "ledger.stats", self.inner.stats()).await
    }

    async fn backlog(&self, shards: &[Shard]) -> Result<Vec<(Shard, u64)>, Failure> {
        self.faults.call(Port::Ledger, "ledger.backlog", self.inner.backlog(shards)).await
    }
}
