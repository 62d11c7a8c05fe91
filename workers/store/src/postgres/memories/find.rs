//! Reading many memories.

use async_trait::async_trait;
use domain::failure::Failure;
use schemas::limits::{MEMORIES_SCANNED_MAX, MEMORY_SCAN_PAGE};
use schemas::memory::MemoryOwner;
use sqlx::postgres::PgRow;

use super::super::PostgresStore;
use super::super::rows::{clean, get};
use super::sql;
use crate::remembering::{Corpus, Only};

#[async_trait]
impl Corpus for PostgresStore {
    type Row = PgRow;

    async fn floor(&self, owner: &MemoryOwner) -> Result<Option<i64>, Failure> {
        let query = sqlx::query(sql::FLOOR).bind(owner.namespace.to_string()).bind(owner.agent_id.to_string());
        let row = self.0.pool.fetch_optional(query.bind(MEMORIES_SCANNED_MAX as i64)).await?;
        row.as_ref().map(|row| get(row, "updated_at_ms")).transpose()
    }

    async fn scan(&self, owner: &MemoryOwner, after: &str, floor_ms: i64) -> Result<Vec<PgRow>, Failure> {
        let query = sqlx::query(sql::SCAN)
            .bind(owner.namespace.to_string())
            .bind(owner.agent_id.to_string())
            .bind(after.to_owned())
            .bind(floor_ms)
            .bind(MEMORY_SCAN_PAGE as i64);
        self.0.pool.fetch_all(query).await
    }

    async fn some(&self, owner: &MemoryOwner, ids: &[&str]) -> Result<Vec<PgRow>, Failure> {
        let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
        let query = sqlx::query(sql::SOME).bind(owner.namespace.to_string()).bind(owner.agent_id.to_string());
        self.0.by_key.fetch_all(query.bind(ids)).await
    }

    async fn recent(
        &self,
        owner: &MemoryOwner,
        only: Only<'_>,
        after: (i64, &str),
        limit: usize,
    ) -> Result<Vec<PgRow>, Failure> {
        let (sql, which) = match only {
            Only::All => (sql::RECENT, None),
            Only::Tier(tier) => (sql::RECENT_OF_TIER, Some(tier.as_str())),
            Only::Kind(kind) => (sql::RECENT_OF_TYPE, Some(kind)),
        };
        let query = sqlx::query(sql)
            .bind(owner.namespace.to_string())
            .bind(owner.agent_id.to_string())
            .bind(after.0)
            .bind(after.1.to_owned())
            .bind(limit as i64);
        let query = match which {
            Some(which) => query.bind(clean(which).into_owned()),
            None => query,
        };
        self.0.by_key.fetch_all(query).await
    }
}
