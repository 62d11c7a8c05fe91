//! The `Memories` port, and what of it moves to an archive.

mod kept;

use std::collections::BTreeMap;

use async_trait::async_trait;
use domain::failure::Failure;
use domain::memory::search::{Scanned, Search, Words, hits};
use domain::memory::vector::to_bytes;
use domain::memory::{Embedding, MemoryHits, MemoryKey, MemoryQuery, NewMemory, Traits};
use domain::ports::{Memories, MemoryListQuery, MemoryPage, Remembered, Unembedded};
use schemas::id::MemoryId;
use schemas::json::Json;
use schemas::limits::{MEMORIES_SCANNED_MAX, MEMORY_INLINE_BYTES_MAX};
use schemas::memory::{Memory, MemoryChange, MemoryOwner};

use super::MemStore;

/// A memory, and what is heavy of it.
#[derive(Debug, Clone)]
pub(super) struct MemoryRec {
    /// With all its content, unless that overflowed and is in the archive alone.
    memory: Memory,
    /// What searches see of the content.
    beginning: String,
    body_hash: [u8; 32],
    content_hash: [u8; 32],
    embedding: Option<Embedding>,
}

/// A row: what is left of it once it was deleted, too.
#[derive(Debug, Clone)]
pub(super) struct Row {
    version: u64,
    revision: u64,
    rec: Option<MemoryRec>,
    kept_at_ms: Option<i64>,
    is_light: bool,
}

impl Row {
    /// The row after a change.
    fn next(before: Option<&Self>, version: u64, rec: Option<MemoryRec>) -> Self {
        let revision = before.map_or(0, |row| row.revision) + 1;
        Self { version, revision, rec, kept_at_ms: None, is_light: false }
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Corpus(BTreeMap<MemoryId, Row>);

impl Corpus {
    fn live(&self) -> Vec<MemoryRec> {
        self.0.values().filter_map(|row| row.rec.clone()).collect()
    }

    fn find(&self, key: &MemoryKey) -> Option<MemoryRec> {
        self.live().into_iter().find(|rec| match key {
            MemoryKey::Id(id) => rec.memory.id == *id,
            MemoryKey::Label(label) => rec.memory.label.as_ref() == Some(label),
        })
    }

    /// The newest version of an id, deletions included; 0 if there is none.
    fn version(&self, id: &MemoryId) -> u64 {
        self.0.get(id).map_or(0, |row| row.version)
    }

    fn put(&mut self, id: MemoryId, version: u64, rec: Option<MemoryRec>) {
        let row = Row::next(self.0.get(&id), version, rec);
        self.0.insert(id, row);
    }

    fn set_embedding(&mut self, id: &MemoryId, version: u64, embedding: &Embedding) -> bool {
        let Some(row) = self.0.get(id).filter(|row| row.version == version) else { return false };
        let Some(mut rec) = row.rec.clone() else { return false };
        rec.embedding = Some(embedding.clone());
        rec.memory.embedding_model = Some(embedding.model.clone());
        self.put(id.clone(), version, Some(rec));
        true
    }

    fn write(&mut self, owner: &MemoryOwner, new: &NewMemory, now_ms: i64) -> Remembered {
        let of_label = new.label.clone().and_then(|label| self.find(&MemoryKey::Label(label)));
        let row = of_label.or_else(|| self.find(&MemoryKey::Id(new.id.clone())));
        let id = row.as_ref().map_or(&new.id, |row| &row.memory.id).clone();
        let version = self.version(&id);
        let done = |change, version| Remembered { change, id: id.clone(), version };
        if row.is_none() && version > 0 {
            return done(MemoryChange::Gone, version);
        }
        if new.expect_version.is_some_and(|expected| expected != version) {
            return done(MemoryChange::Conflict, version);
        }
        if let Some(row) = row.as_ref().filter(|row| row.body_hash == new.body_hash()) {
            if let Some(embedding) = &new.embedding
                && row.memory.embedding_model.as_ref() != Some(&embedding.model)
            {
                self.set_embedding(&id, version, embedding);
            }
            return done(MemoryChange::Unchanged, version);
        }
        let kept =
            row.as_ref().filter(|row| row.content_hash == new.content_hash()).and_then(|row| row.embedding.clone());
        let embedding = new.embedding.clone().or(kept);
        let memory = Memory {
            id: id.clone(),
            namespace: owner.namespace.clone(),
            agent_id: owner.agent_id.clone(),
            label: new.label.clone(),
            tier: new.tier,
            kind: new.kind.clone(),
            content: new.content.clone(),
            content_ref: (new.content.len() > MEMORY_INLINE_BYTES_MAX).then(|| format!("{}/{id}", owner.agent_id)),
            significance: new.significance,
            metadata: new.metadata.clone(),
            embedding_model: embedding.as_ref().map(|embedding| embedding.model.clone()),
            version: version + 1,
            created_at_ms: row.as_ref().map_or(now_ms, |row| row.memory.created_at_ms),
            updated_at_ms: now_ms,
        };
        let beginning = new.content[..new.content.floor_char_boundary(MEMORY_INLINE_BYTES_MAX)].to_owned();
        let (body_hash, content_hash) = (new.body_hash(), new.content_hash());
        self.put(id.clone(), version + 1, Some(MemoryRec { memory, beginning, body_hash, content_hash, embedding }));
        let change = if row.is_some() { MemoryChange::Updated } else { MemoryChange::Created };
        done(change, version + 1)
    }
}

impl MemoryRec {
    /// As lists and searches show it.
    fn shown(&self) -> Memory {
        let mut memory = self.memory.clone();
        if memory.content_ref.is_some() {
            memory.content.clear();
        }
        memory
    }

    fn place(&self) -> (i64, &MemoryId) {
        (self.memory.updated_at_ms, &self.memory.id)
    }

    fn traits<'r>(&'r self, metadata: &'r Json) -> Traits<'r> {
        Traits {
            tier: self.memory.tier,
            kind: &self.memory.kind,
            significance: self.memory.significance,
            metadata: metadata.as_str(),
            updated_at_ms: self.memory.updated_at_ms,
        }
    }
}

#[async_trait]
impl Memories for MemStore {
    async fn write(&self, owner: &MemoryOwner, memory: &NewMemory) -> Result<Remembered, Failure> {
        let now_ms = self.now_ms();
        Ok(self.transaction().memories.entry(owner.clone()).or_default().write(owner, memory, now_ms))
    }

    async fn read(&self, owner: &MemoryOwner, key: &MemoryKey) -> Result<Option<Memory>, Failure> {
        Ok(self.corpus(owner).find(key).map(|rec| rec.memory))
    }

    async fn search(&self, owner: &MemoryOwner, query: &MemoryQuery) -> Result<MemoryHits, Failure> {
        let mut live = self.corpus(owner).live();
        live.sort_by(|a, b| b.place().cmp(&a.place()));
        let floor_ms = live.get(MEMORIES_SCANNED_MAX).map(|rec| rec.memory.updated_at_ms);
        live.retain(|rec| floor_ms.is_none_or(|floor| rec.memory.updated_at_ms > floor));
        let mut search = Search::new(query);
        for rec in &live {
            let stored =
                rec.embedding.as_ref().map(|embedding| (embedding.model.as_str(), to_bytes(&embedding.vector)));
            search.see(&Scanned {
                id: &rec.memory.id,
                traits: rec.traits(&Json::of(&rec.memory.metadata)),
                words: Words::Text { label: rec.memory.label.as_deref(), content: &rec.beginning },
                embedding: stored.as_ref().map(|(model, bytes)| (*model, &bytes[..])),
            });
        }
        let memories = live.iter().map(MemoryRec::shown).collect();
        Ok(MemoryHits { hits: hits(search.finish(), memories), incomplete: floor_ms.is_some() })
    }

    async fn list(&self, owner: &MemoryOwner, query: &MemoryListQuery) -> Result<MemoryPage, Failure> {
        let mut live = self.corpus(owner).live();
        live.sort_by(|a, b| b.place().cmp(&a.place()));
        live.retain(|rec| query.after.as_ref().is_none_or(|(ms, id)| rec.place() < (*ms, id)));
        live.retain(|rec| query.filter.matches(&rec.traits(&Json::of(&rec.memory.metadata))));
        let rows: Vec<Memory> = live.iter().take(query.limit).map(MemoryRec::shown).collect();
        let last = rows.last().map(|memory| (memory.updated_at_ms, memory.id.clone()));
        Ok(MemoryPage { next: last.filter(|_| live.len() > rows.len()), rows })
    }

    async fn delete(&self, owner: &MemoryOwner, key: &MemoryKey) -> Result<bool, Failure> {
        let mut state = self.transaction();
        let Some(corpus) = state.memories.get_mut(owner) else { return Ok(false) };
        let Some(rec) = corpus.find(key) else { return Ok(false) };
        corpus.put(rec.memory.id, rec.memory.version + 1, None);
        Ok(true)
    }

    async fn unembedded(
        &self,
        owner: &MemoryOwner,
        of: Option<&str>,
        after: Option<&MemoryId>,
        limit: usize,
    ) -> Result<Vec<Unembedded>, Failure> {
        let live = self.corpus(owner).live();
        let wanted = live
            .into_iter()
            .map(|rec| rec.memory)
            .filter(|memory| memory.embedding_model.as_deref() == of)
            .filter(|memory| after.is_none_or(|after| memory.id > *after));
        let row = |memory: Memory| Unembedded { id: memory.id, version: memory.version, content: memory.content };
        Ok(wanted.take(limit).map(row).collect())
    }

    async fn embed(
        &self,
        owner: &MemoryOwner,
        id: &MemoryId,
        version: u64,
        embedding: &Embedding,
    ) -> Result<bool, Failure> {
        let mut state = self.transaction();
        let Some(corpus) = state.memories.get_mut(owner) else { return Ok(false) };
        Ok(corpus.set_embedding(id, version, embedding))
    }
}

impl MemStore {
    fn corpus(&self, owner: &MemoryOwner) -> Corpus {
        self.transaction().memories.get(owner).cloned().unwrap_or_default()
    }
}
