//! What agents remember.

mod find;
mod kept;
mod seen;
mod sql;
mod write;

use async_trait::async_trait;
use domain::failure::Failure;
use domain::memory::vector::to_bytes;
use domain::memory::{Embedding, MemoryHits, MemoryKey, MemoryQuery, NewMemory};
use domain::ports::{Memories, MemoryListQuery, MemoryPage, Remembered, Unembedded};
use schemas::id::MemoryId;
use schemas::memory::{Memory, MemoryOwner};

use super::PostgresStore;
use super::rows::clean;
use crate::remembering::{list, search, unembedded, whole_memory};
#[cfg(test)]
pub(super) use kept::SQL as KEPT_SQL;
pub(super) use seen::Seen;
#[cfg(test)]
pub(super) use sql::SQL;

#[async_trait]
impl Memories for PostgresStore {
    async fn write(&self, owner: &MemoryOwner, memory: &NewMemory) -> Result<Remembered, Failure> {
        self.0.remembering.run(&write::Write { owner, new: &write::storable(memory) }).await
    }

    async fn read(&self, owner: &MemoryOwner, key: &MemoryKey) -> Result<Option<Memory>, Failure> {
        let (sql, key) = match key {
            MemoryKey::Id(id) => (sql::READ_ID, clean(id.as_str())),
            MemoryKey::Label(label) => (sql::READ_LABEL, clean(label)),
        };
        let query = sqlx::query(sql).bind(owner.namespace.to_string()).bind(owner.agent_id.to_string());
        let row = self.0.pool.fetch_optional(query.bind(key.into_owned())).await?;
        row.as_ref().map(|row| whole_memory(owner, row)).transpose()
    }

    async fn search(&self, owner: &MemoryOwner, query: &MemoryQuery) -> Result<MemoryHits, Failure> {
        match seen::search(self, owner, query).await? {
            Some(hits) => Ok(hits),
            None => search(self, owner, query).await,
        }
    }

    async fn list(&self, owner: &MemoryOwner, query: &MemoryListQuery) -> Result<MemoryPage, Failure> {
        list(self, owner, query).await
    }

    async fn delete(&self, owner: &MemoryOwner, key: &MemoryKey) -> Result<bool, Failure> {
        self.0.remembering.run(&write::Delete { owner, key }).await
    }

    async fn unembedded(
        &self,
        owner: &MemoryOwner,
        of: Option<&str>,
        after: Option<&MemoryId>,
        limit: usize,
    ) -> Result<Vec<Unembedded>, Failure> {
        let query = sqlx::query(sql::UNEMBEDDED)
            .bind(owner.namespace.to_string())
            .bind(owner.agent_id.to_string())
            .bind(after.map_or(String::new(), |id| id.to_string()))
            .bind(of.map_or(String::new(), |model| clean(model).into_owned()))
            .bind(limit as i64);
        self.0.pool.fetch_all(query).await?.iter().map(unembedded).collect()
    }

    async fn embed(
        &self,
        owner: &MemoryOwner,
        id: &MemoryId,
        version: u64,
        embedding: &Embedding,
    ) -> Result<bool, Failure> {
        let query = || {
            sqlx::query(sql::EMBED)
                .bind(owner.namespace.to_string())
                .bind(owner.agent_id.to_string())
                .bind(id.to_string())
                .bind(version as i64)
                .bind(clean(&embedding.model).into_owned())
                .bind(to_bytes(&embedding.vector))
        };
        self.0.pool.execute(query).await.map(|changed| changed > 0)
    }
}
