//! What the liveness auditor reads and mends: the heads of all sessions, page by page.

use domain::failure::Failure;
use schemas::id::SessionKey;
use schemas::session::Head;

use super::SqliteStore;
use super::failure::failure;
use super::rows::{get, json, key};

/// Walks the key: no other index says of which sessions nobody thinks. The wake time is the
/// column's, which is what [`domain::ports::Sessions::due`] goes by.
const HEADS: &str = "
    SELECT namespace, session_id, wake_at_ms, head FROM sessions
    WHERE (namespace, session_id) > (?1, ?2) ORDER BY namespace, session_id LIMIT ?3";
const REARM: &str = "
    UPDATE sessions SET wake_at_ms = cast(unixepoch('subsec') * 1000 AS INTEGER)
    WHERE namespace = ?1 AND session_id = ?2 AND next_offset = ?3 AND wake_at_ms IS NULL
        AND status NOT IN ('stopped', 'completed', 'error')";

#[cfg(test)]
pub(super) const SQL: &[(&str, &str)] = &[("audit::heads", HEADS), ("audit::rearm", REARM)];

impl SqliteStore {
    pub(super) async fn walk_heads(
        &self,
        after: Option<&SessionKey>,
        limit: usize,
    ) -> Result<Vec<(SessionKey, Head)>, Failure> {
        let (namespace, session) = after.map_or(("", ""), |key| (key.namespace.as_str(), key.session_id.as_str()));
        let rows = sqlx::query(HEADS)
            .bind(namespace)
            .bind(session)
            .bind(limit as i64)
            .fetch_all(&mut *self.0.readers.lend().await?)
            .await
            .map_err(failure)?;
        let read = |row| Ok((key(row)?, Head { wake_at_ms: get(row, "wake_at_ms")?, ..json(row, "head")? }));
        rows.iter().map(read).collect()
    }

    pub(super) async fn set_due(&self, key: &SessionKey, next_offset: u64) -> Result<bool, Failure> {
        let query = sqlx::query(REARM)
            .bind(key.namespace.to_string())
            .bind(key.session_id.to_string())
            .bind(i64::try_from(next_offset).unwrap_or(i64::MAX));
        Ok(self.0.writer.execute(query).await? > 0)
    }
}
