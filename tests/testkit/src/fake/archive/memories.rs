//! The archive of memories: one row of each, the highest revision. Searches get all of an agent.

use async_trait::async_trait;
use domain::failure::Failure;
use domain::memory::MemoryQuery;
use domain::memory::kept::{Candidate, Candidates, KeptMemory};
use domain::memory::terms::spaced;
use domain::ports::{MemoryArchive, Revision};
use schemas::id::MemoryId;
use schemas::json::Json;
use schemas::limits::MEMORY_INLINE_BYTES_MAX;
use schemas::memory::MemoryOwner;

use super::MemArchive;

#[async_trait]
impl MemoryArchive for MemArchive {
    async fn keep(&self, rows: &[KeptMemory]) -> Result<(), Failure> {
        if let Some(row) = rows.iter().find(|row| row.lacks_content()) {
            return Err(Failure::internal(format!("{} has no content", row.id)));
        }
        for row in rows {
            self.put(row);
        }
        // Whoever is told that it failed may find the rows there.
        self.between_tables().await
    }

    async fn candidates(&self, owner: &MemoryOwner, _: &MemoryQuery, _: usize) -> Result<Candidates, Failure> {
        let rows: Vec<Candidate> = self.of(owner).iter().filter_map(candidate).collect();
        Ok(Candidates { total: rows.len() as u64, rows })
    }

    async fn kept(&self, owner: &MemoryOwner, ids: &[&MemoryId]) -> Result<Vec<KeptMemory>, Failure> {
        Ok(self.of(owner).into_iter().filter(|row| ids.contains(&&row.id)).collect())
    }

    async fn revisions(&self, owner: &MemoryOwner, ids: &[&MemoryId]) -> Result<Vec<Revision>, Failure> {
        let revision = |row: KeptMemory| Revision { owner: row.owner, id: row.id, revision: row.revision };
        Ok(self.kept(owner, ids).await?.into_iter().map(revision).collect())
    }
}

impl MemArchive {
    fn put(&self, row: &KeptMemory) {
        let mut tables = self.lock();
        let at = (row.owner.clone(), row.id.clone());
        if tables.memories.get(&at).is_none_or(|there| there.revision < row.revision) {
            tables.memories.insert(at, row.clone());
        }
    }

    fn of(&self, owner: &MemoryOwner) -> Vec<KeptMemory> {
        self.lock().memories.values().filter(|row| row.owner == *owner).cloned().collect()
    }
}

fn candidate(row: &KeptMemory) -> Option<Candidate> {
    let memory = row.memory.as_ref()?;
    let beginning = &memory.content[..memory.content.floor_char_boundary(MEMORY_INLINE_BYTES_MAX)];
    Some(Candidate {
        id: memory.id.clone(),
        tier: memory.tier,
        kind: memory.kind.clone(),
        significance: memory.significance,
        metadata: Json::of(&memory.metadata).as_str().to_owned(),
        updated_at_ms: memory.updated_at_ms,
        text: spaced(memory.label.as_deref().into_iter().chain([beginning])),
        embedding: row.embedding.clone(),
    })
}
