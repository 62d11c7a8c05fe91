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

use super::SqliteStore;
use super::failure::failure;
use crate::remembering::{list, search, unembedded, whole_memory};
#[cfg(test)]
pub(super) use kept::SQL as KEPT_SQL;
pub(super) use seen::Seen;
#[cfg(test)]
pub(super) use sql::SQL;

#[async_trait]
impl Memories for SqliteStore {
    async fn write(&self, owner: &MemoryOwner, memory: &NewMemory) -> Result<Remembered, Failure> {
        let (store, owner, memory) = (self.clone(), owner.clone(), memory.clone());
        seen::whole(async move {
            // The write lock is held from here on: nobody else writes between look and write.
            let mut tx = store.0.writer.begin().await?;
            let result = write::write(tx.connection(), &owner, &memory, store.0.clock.now_ms()).await;
            let done = tx.finish(result).await;
            match &done {
                Ok(done) => store.0.seen.changed(&owner, &done.id),
                // Whether it was written is not known.
                Err(_) => store.0.seen.forget(&owner),
            }
            done
        })
        .await
    }

    async fn read(&self, owner: &MemoryOwner, key: &MemoryKey) -> Result<Option<Memory>, Failure> {
        let (sql, key) = match key {
            MemoryKey::Id(id) => (sql::READ_ID, id.as_str()),
            MemoryKey::Label(label) => (sql::READ_LABEL, label.as_str()),
        };
        let query = sqlx::query(sql).bind(owner.namespace.as_str()).bind(owner.agent_id.as_str()).bind(key);
        let row = query.fetch_optional(&mut *self.0.readers.lend().await?).await.map_err(failure)?;
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
        let (store, owner, key) = (self.clone(), owner.clone(), key.clone());
        seen::whole(async move {
            let mut tx = store.0.writer.begin().await?;
            let result = write::delete(tx.connection(), &owner, &key, store.0.clock.now_ms()).await;
            let done = tx.finish(result).await;
            store.0.seen.forget(&owner);
            done
        })
        .await
    }

    async fn unembedded(
        &self,
        owner: &MemoryOwner,
        of: Option<&str>,
        after: Option<&MemoryId>,
        limit: usize,
    ) -> Result<Vec<Unembedded>, Failure> {
        let rows = sqlx::query(sql::UNEMBEDDED)
            .bind(owner.namespace.as_str())
            .bind(owner.agent_id.as_str())
            .bind(after.map_or("", |id| id.as_str()))
            .bind(of.unwrap_or_default())
            .bind(limit as i64)
            .fetch_all(&mut *self.0.readers.lend().await?)
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
        let (store, owner, id) = (self.clone(), owner.clone(), id.clone());
        seen::whole(async move {
            let done = store.0.writer.execute(query).await;
            store.0.seen.changed(&owner, &id);
            done.map(|changed| changed > 0)
        })
        .await
    }
}
