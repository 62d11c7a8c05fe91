//! Reads of the session registry.

use async_trait::async_trait;
use schemas::api::SessionFilter;
use schemas::id::{AgentId, Namespace, SessionId, SessionKey, Shard};
use schemas::session::SessionRow;

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

    /// Number of sessions per status, over all namespaces.
    async fn count_by_status(&self) -> Result<Vec<(schemas::session::SessionStatus, u64)>, Failure>;
}
