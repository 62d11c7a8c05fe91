//! The session registry through faults.

use async_trait::async_trait;
use domain::failure::Failure;
use domain::ports::{SessionQuery, Sessions};
use schemas::id::{AgentId, Namespace, SessionKey, Shard};
use schemas::session::{Head, SessionRow, SessionStatus};

use crate::unreliable::{Port, Unreliable};

#[async_trait]
impl<P: Sessions + ?Sized> Sessions for Unreliable<P> {
    async fn session(&self, key: &SessionKey) -> Result<Option<SessionRow>, Failure> {
        self.faults.call(Port::Sessions, "sessions.session", self.inner.session(key)).await
    }

    async fn list(&self, query: &SessionQuery) -> Result<Vec<SessionRow>, Failure> {
        self.faults.call(Port::Sessions, "sessions.list", self.inner.list(query)).await
    }

    async fn latest(&self, namespace: &Namespace, agent: &AgentId) -> Result<Option<SessionRow>, Failure> {
        self.faults.call(Port::Sessions, "sessions.latest", self.inner.latest(namespace, agent)).await
    }

    async fn agents(
        &self,
        namespace: &Namespace,
        after: Option<&AgentId>,
        limit: usize,
    ) -> Result<Vec<(SessionRow, u64)>, Failure> {
        self.faults.call(Port::Sessions, "sessions.agents", self.inner.agents(namespace, after, limit)).await
    }

    async fn due(
        &self,
        shard: Shard,
        until_ms: i64,
        after: Option<(i64, SessionKey)>,
        limit: usize,
    ) -> Result<Vec<(i64, SessionKey)>, Failure> {
        self.faults.call(Port::Sessions, "sessions.due", self.inner.due(shard, until_ms, after, limit)).await
    }

    async fn heads(&self, after: Option<&SessionKey>, limit: usize) -> Result<Vec<(SessionKey, Head)>, Failure> {
        self.faults.call(Port::Sessions, "sessions.heads", self.inner.heads(after, limit)).await
    }

    async fn rearm(&self, key: &SessionKey, next_offset: u64) -> Result<bool, Failure> {
        self.faults.call(Port::Sessions, "sessions.rearm", self.inner.rearm(key, next_offset)).await
    }

    async fn count_by_status(&self) -> Result<Vec<(SessionStatus, u64)>, Failure> {
        self.faults.call(Port::Sessions, "sessions.count_by_status", self.inner.count_by_status()).await
    }
}
