//! Memories of two places as one: what lately changed is read from SQL, the rest from the archive.
//!
//! The tail is read first, and hides what the archive has of the same memories: a row that no longer
//! matches must hide the older one that does. A row that leaves the tail meanwhile is in the archive
//! already, for longer than any reader is behind. Of an agent with few memories SQL has all that a search
//! needs, and the archive is not asked.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use schemas::id::MemoryId;
use schemas::limits::{
    MEMORIES_NEAR_MAX, MEMORIES_SCANNED_MAX, MEMORY_CANDIDATES_MAX, MEMORY_SCAN_PAGE, MEMORY_UPDATE_TRIES_MAX,
};
use schemas::memory::{Memory, MemoryOwner};

use crate::failure::Failure;
use crate::memory::kept::{KeptMemory, lacks_content};
use crate::memory::search::{Ranked, Search, hits};
use crate::memory::{Embedding, MemoryHits, MemoryKey, MemoryQuery, NewMemory};
use crate::ports::{Memories, MemoryArchive, MemoryListQuery, MemoryPage, MemoryTail, Remembered, Unembedded};

/// Clones are the same memories.
#[derive(Clone)]
pub struct ArchivedMemories {
    tail: Arc<dyn MemoryTail>,
    archive: Arc<dyn MemoryArchive>,
    near: usize,
}

impl ArchivedMemories {
    pub fn new(tail: Arc<dyn MemoryTail>, archive: Arc<dyn MemoryArchive>) -> Self {
        Self { tail, archive, near: MEMORIES_NEAR_MAX }
    }

    /// SQL searches alone for agents with at most so many memories.
    pub fn near(self, near: usize) -> Self {
        Self { near, ..self }
    }

    /// The vector that the archive has of this content, for a write that brings none: the row may have
    /// lost its own. It depends on model and content alone, so it is right whoever else writes. The rows
    /// of an agent with few memories have theirs.
    async fn vector_of(&self, owner: &MemoryOwner, new: &NewMemory) -> Result<Option<Embedding>, Failure> {
        if self.tail.is_near(owner, self.near).await? {
            return Ok(None);
        }
        let of_label = match &new.label {
            Some(label) => self.tail.read(owner, &MemoryKey::Label(label.clone())).await?,
            None => None,
        };
        let row = match of_label {
            Some(row) => Some(row),
            None => self.tail.read(owner, &MemoryKey::Id(new.id.clone())).await?,
        };
        let Some((id, model)) = row.and_then(|row| Some((row.id, row.embedding_model?))) else { return Ok(None) };
        let kept = self.archive.kept(owner, &[&id]).await?;
        let same = |kept: &KeptMemory| kept.memory.as_ref().is_some_and(|memory| memory.content == new.content);
        let vector = kept.into_iter().find(same).and_then(|kept| kept.embedding);
        Ok(vector.filter(|embedding| embedding.model == model))
    }

    /// Lets the search see the tail. Answers whose rows those are, and whether they were too many.
    async fn see_tail(
        &self,
        owner: &MemoryOwner,
        search: &mut Search<'_>,
    ) -> Result<(HashSet<MemoryId>, bool), Failure> {
        let mut seen = HashSet::new();
        let mut after: Option<MemoryId> = None;
        loop {
            let rows = self.tail.tail(owner, after.as_ref(), MEMORY_SCAN_PAGE).await?;
            let full = rows.len() == MEMORY_SCAN_PAGE;
            after = rows.last().map(|(id, _)| id.clone());
            for (id, row) in rows {
                if let Some(row) = row {
                    row.shown(|scanned| search.see(scanned));
                }
                seen.insert(id);
            }
            // Memories that are written meanwhile make no scan endless.
            if !full || seen.len() >= MEMORIES_SCANNED_MAX {
                return Ok((seen, full));
            }
        }
    }

    /// Gives rows the content that the archive alone has, as far as it does.
    async fn complete(&self, owner: &MemoryOwner, rows: &mut [Unembedded]) -> Result<(), Failure> {
        let lacking: Vec<&MemoryId> = rows.iter().filter(|row| row.content.is_empty()).map(|row| &row.id).collect();
        if lacking.is_empty() {
            return Ok(());
        }
        let kept = self.archive.kept(owner, &lacking).await?;
        for memory in kept.into_iter().filter_map(|kept| kept.memory) {
            if let Some(row) = rows.iter_mut().find(|row| row.id == memory.id && row.version == memory.version) {
                row.content = memory.content;
            }
        }
        Ok(())
    }

    async fn memories_of(&self, owner: &MemoryOwner, ranked: &[Ranked]) -> Result<Vec<Memory>, Failure> {
        let ids: Vec<&MemoryId> = ranked.iter().map(|ranked| &ranked.id).collect();
        if ids.is_empty() { Ok(Vec::new()) } else { self.tail.some(owner, &ids).await }
    }
}

#[async_trait]
impl Memories for ArchivedMemories {
    async fn write(&self, owner: &MemoryOwner, memory: &NewMemory) -> Result<Remembered, Failure> {
        let embedding = match &memory.embedding {
            // Without the archive it is written all the same, and found by its words.
            None => self.vector_of(owner, memory).await.unwrap_or_default(),
            Some(_) => None,
        };
        match embedding {
            None => self.tail.write(owner, memory).await,
            Some(_) => self.tail.write(owner, &NewMemory { embedding, ..memory.clone() }).await,
        }
    }

    async fn read(&self, owner: &MemoryOwner, key: &MemoryKey) -> Result<Option<Memory>, Failure> {
        for _ in 0..MEMORY_UPDATE_TRIES_MAX {
            let Some(memory) = self.tail.read(owner, key).await? else { return Ok(None) };
            if !lacks_content(&memory) {
                return Ok(Some(memory));
            }
            let kept = self.archive.kept(owner, &[&memory.id]).await?;
            let content = kept.into_iter().filter_map(|kept| kept.memory).find(|kept| kept.version == memory.version);
            if let Some(Memory { content, .. }) = content {
                return Ok(Some(Memory { content, ..memory }));
            }
            // It was written between the two reads.
        }
        Err(Failure::unavailable("the archive does not have this memory's content yet; try again"))
    }

    async fn search(&self, owner: &MemoryOwner, query: &MemoryQuery) -> Result<MemoryHits, Failure> {
        // A row that loses its vector now is still found by its words.
        if self.tail.is_near(owner, self.near).await? {
            return self.tail.search(owner, query).await;
        }
        let mut search = Search::new(query);
        let (fresh, incomplete) = self.see_tail(owner, &mut search).await?;
        // Those that the tail hides take no place from others, as far as there are not too many.
        let limit = MEMORY_CANDIDATES_MAX + fresh.len().min(MEMORY_CANDIDATES_MAX);
        let found = self.archive.candidates(owner, query, limit).await?;
        let told = found.rows.len() as u64;
        for row in found.rows.iter().filter(|row| !fresh.contains(&row.id)) {
            row.shown(|scanned| search.see(scanned));
        }
        search.see_others(found.total.saturating_sub(told));
        let ranked = search.finish();
        let memories = self.memories_of(owner, &ranked).await?;
        Ok(MemoryHits { hits: hits(ranked, memories), incomplete })
    }

    async fn list(&self, owner: &MemoryOwner, query: &MemoryListQuery) -> Result<MemoryPage, Failure> {
        self.tail.list(owner, query).await
    }

    async fn delete(&self, owner: &MemoryOwner, key: &MemoryKey) -> Result<bool, Failure> {
        self.tail.delete(owner, key).await
    }

    async fn unembedded(
        &self,
        owner: &MemoryOwner,
        of: Option<&str>,
        after: Option<&MemoryId>,
        limit: usize,
    ) -> Result<Vec<Unembedded>, Failure> {
        let (mut after, mut seen) = (after.cloned(), 0);
        loop {
            let mut rows = self.tail.unembedded(owner, of, after.as_ref(), limit).await?;
            let Some(last) = rows.last() else { return Ok(rows) };
            after = Some(last.id.clone());
            seen += rows.len();
            let more = rows.len() >= limit;
            self.complete(owner, &mut rows).await?;
            // One that was written meanwhile is told again by the next walk.
            rows.retain(|row| !row.content.is_empty());
            // Nothing at all would be taken for the end, though others follow.
            if !rows.is_empty() || !more {
                return Ok(rows);
            }
            if seen >= MEMORIES_SCANNED_MAX {
                return Err(Failure::internal(format!(
                    "the content of {seen} memories of {}/{} is neither in the database nor in the archive (were they \
                     restored from different times?)",
                    owner.namespace, owner.agent_id
                )));
            }
        }
    }

    async fn embed(
        &self,
        owner: &MemoryOwner,
        id: &MemoryId,
        version: u64,
        embedding: &Embedding,
    ) -> Result<bool, Failure> {
        self.tail.embed(owner, id, version, embedding).await
    }
}
