//! What agents remember.

mod find;
mod kept;
mod sql;
mod write;

use async_trait::async_trait;
use domain::failure::Failure;
use domain::memory::vector::to_bytes;
use domain::memory::{Embedding, MemoryHits, MemoryKey, MemoryQuery, NewMemory};
use domain::ports::{Memories, MemoryListQuery, MemoryPage, Remembered, Unembedded};
use schemas::id::MemoryId;
use schemas::memory::{Memory, MemoryOwner};

use super::SqliteStore;
use super::failure::failure;
use crate::remembering::{list, search, unembedded, whole_memory};
#[cfg(test)]
pub(super) use kept::SQL as KEPT_SQL;
#[cfg(test)]
pub(super) use sql::SQL;

#[async_trait]
impl Memories for SqliteStore {
    async fn write(&self, owner: &MemoryOwner, memory: &NewMemory) -> Result<Remembered, Failure> {
        // The write lock is held from here on: nobody else writes between look and write.
        let mut tx = self.0.writer.begin().await?;
        let result = write::write(tx.connection(), owner, memory, self.0.clock.now_ms()).await;
        tx.finish(result).await
    }

    async fn read(&self, owner: &MemoryOwner, key: &MemoryKey) -> Result<Option<Memory>, Failure> {
        let (sql, key) = match key {
            MemoryKey::Id(id) => (sql::READ_ID, id.as_str()),
            MemoryKey::Label(label) => (sql::READ_LABEL, label.as_str()),
        };
        let query = sqlx::query(sql).bind(owner.namespace.as_str()).bind(owner.agent_id.as_str()).bind(key);
        let row = query.fetch_optional(&self.0.readers).await.map_err(failure)?;
        row.as_ref().map(|row| whole_memory(owner, row)).transpose()
    }

    async fn search(&self, owner: &MemoryOwner, query: &MemoryQuery) -> Result<MemoryHits, Failure> {
        search(self, owner, query).await
    }

    async fn list(&self, owner: &MemoryOwner, query: &MemoryListQuery) -> Result<MemoryPage, Failure> {
        list(self, owner, query).await
    }

    async fn delete(&self, owner: &MemoryOwner, key: &MemoryKey) -> Result<bool, Failure> {
        let mut tx = self.0.writer.begin().await?;
        let result = write::delete(tx.connection(), owner, key, self.0.clock.now_ms()).await;
        tx.finish(result).await
    }

    async fn unembedded(
        &self,
        owner: &MemoryOwner,
        model: &str,
        after: Option<&MemoryId>,
        limit: usize,
    ) -> Result<Vec<Unembedded>, Failure> {
        let rows = sqlx::query(sql::UNEMBEDDED)
            .bind(owner.namespace.as_str())
            .bind(owner.agent_id.as_str())
            .bind(after.map_or("", |id| id.as_str()))
            .bind(model)
            .bind(limit as i64)
            .fetch_all(&self.0.readers)
            .await
            .map_err(failure)?;
        rows.iter().map(unembedded).collect()
    }

    async fn embed(
        &self,
        owner: &MemoryOwner,
        id: &MemoryId,
        version: u64,
        embedding: &Embedding,
    ) -> Result<bool, Failure> {
        let query = sqlx::query(sql::EMBED)
            .bind(owner.namespace.to_string())
            .bind(owner.agent_id.to_string())
            .bind(id.to_string())
            .bind(version as i64)
            .bind(embedding.model.clone())
            .bind(to_bytes(&embedding.vector));
        self.0.writer.execute(query).await.map(|changed| changed > 0)
    }
}
