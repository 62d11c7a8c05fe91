//! Reading many memories.

use async_trait::async_trait;
use domain::failure::Failure;
use schemas::id::MemoryId;
use schemas::json::Json;
use schemas::limits::{MEMORIES_SCANNED_MAX, MEMORY_SCAN_PAGE};
use schemas::memory::MemoryOwner;
use sqlx::sqlite::SqliteRow;

use super::super::SqliteStore;
use super::super::failure::failure;
use super::super::rows::get;
use super::sql;
use crate::remembering::{Corpus, Only};

impl SqliteStore {
    /// What a search sees of the given memories, in any order.
    pub(super) async fn scan_some(&self, owner: &MemoryOwner, ids: &[MemoryId]) -> Result<Vec<SqliteRow>, Failure> {
        let query = sqlx::query(sql::SCAN_SOME).bind(owner.namespace.as_str()).bind(owner.agent_id.as_str());
        let query = query.bind(Json::of(ids).as_str().to_owned());
        query.fetch_all(&mut *self.0.readers.lend().await?).await.map_err(failure)
    }
}

#[async_trait]
impl Corpus for SqliteStore {
    type Row = SqliteRow;

    async fn floor(&self, owner: &MemoryOwner) -> Result<Option<i64>, Failure> {
        let query = sqlx::query(sql::FLOOR).bind(owner.namespace.as_str()).bind(owner.agent_id.as_str());
        let row = query
            .bind(MEMORIES_SCANNED_MAX as i64)
            .fetch_optional(&mut *self.0.readers.lend().await?)
            .await
            .map_err(failure)?;
        row.as_ref().map(|row| get(row, "updated_at_ms")).transpose()
    }

    async fn scan(&self, owner: &MemoryOwner, after: &str, floor_ms: i64) -> Result<Vec<SqliteRow>, Failure> {
        sqlx::query(sql::SCAN)
            .bind(owner.namespace.as_str())
            .bind(owner.agent_id.as_str())
            .bind(after)
            .bind(floor_ms)
            .bind(MEMORY_SCAN_PAGE as i64)
            .fetch_all(&mut *self.0.readers.lend().await?)
            .await
            .map_err(failure)
    }

    async fn some(&self, owner: &MemoryOwner, ids: &[&str]) -> Result<Vec<SqliteRow>, Failure> {
        let query = sqlx::query(sql::SOME).bind(owner.namespace.as_str()).bind(owner.agent_id.as_str());
        query
            .bind(Json::of(ids).as_str().to_owned())
            .fetch_all(&mut *self.0.readers.lend().await?)
            .await
            .map_err(failure)
    }

    async fn recent(
        &self,
        owner: &MemoryOwner,
        only: Only<'_>,
        after: (i64, &str),
        limit: usize,
    ) -> Result<Vec<SqliteRow>, Failure> {
        let (sql, which) = match only {
            Only::All => (sql::RECENT, None),
            Only::Tier(tier) => (sql::RECENT_OF_TIER, Some(tier.as_str())),
            Only::Kind(kind) => (sql::RECENT_OF_TYPE, Some(kind)),
        };
        let query = sqlx::query(sql)
            .bind(owner.namespace.as_str())
            .bind(owner.agent_id.as_str())
            .bind(after.0)
            .bind(after.1)
            .bind(limit as i64);
        let query = if which.is_some() { query.bind(which) } else { query };
        query.fetch_all(&mut *self.0.readers.lend().await?).await.map_err(failure)
    }
}
