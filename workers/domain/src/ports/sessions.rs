//! Reads of the session registry.

use async_trait::async_trait;
use schemas::api::SessionFilter;
use schemas::id::{AgentId, Namespace, SessionId, SessionKey, Shard};
use schemas::session::{Head, SessionRow};

use crate::failure::Failure;

/// A page of sessions, newest first (by `created_at`, then id, both descending).
#[derive(Debug, Clone)]
pub struct SessionQuery {
    pub namespace: Namespace,
    pub filter: SessionFilter,
    /// Case-sensitive prefix of session or agent id.
    pub prefix: Option<String>,
    /// `(created_at_ms, session_id)` of the last row of the page before.
    pub after: Option<(i64, SessionId)>,
    pub limit: usize,
}

#[async_trait]
pub trait Sessions: Send + Sync {
    async fn session(&self, key: &SessionKey) -> Result<Option<SessionRow>, Failure>;

    async fn list(&self, query: &SessionQuery) -> Result<Vec<SessionRow>, Failure>;

    /// The newest session of an agent (SPEC Q-SES-04).
    async fn latest(&self, namespace: &Namespace, agent: &AgentId) -> Result<Option<SessionRow>, Failure>;

    /// Agents in id order after `after`, each with its newest session and number of sessions.
    async fn agents(
        &self,
        namespace: &Namespace,
        after: Option<&AgentId>,
        limit: usize,
    ) -> Result<Vec<(SessionRow, u64)>, Failure>;

    /// Sessions of a shard with `after < (wake_at, key)` and `wake_at <= until_ms`, in that order.
    async fn due(
        &self,
        shard: Shard,
        until_ms: i64,
        after: Option<(i64, SessionKey)>,
        limit: usize,
    ) -> Result<Vec<(i64, SessionKey)>, Failure>;

    /// Heads of all sessions in key order after `after`, at most `limit`; no index but the key's.
    async fn heads(&self, after: Option<&SessionKey>, limit: usize) -> Result<Vec<(SessionKey, Head)>, Failure>;

    /// Makes a session due now by the store's own clock: one that is not at rest, has no wake time
    /// and still has `next_offset` as next offset. Writes nothing but the wake time that [`Self::due`]
    /// goes by: the owner's next commit replaces it. Returns whether it did.
    async fn rearm(&self, key: &SessionKey, next_offset: u64) -> Result<bool, Failure>;

    /// Number of sessions per status, over all namespaces.
    async fn count_by_status(&self) -> Result<Vec<(schemas::session::SessionStatus, u64)>, Failure>;
}
