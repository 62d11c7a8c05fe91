//! The tail of memories: what an archive does not have yet, or not for long.

use async_trait::async_trait;
use domain::failure::Failure;
use domain::memory::kept::{Candidate, KeptMemory};
use domain::ports::{MemoryTail, ModelOf, Revision, TailRow};
use schemas::id::MemoryId;
use schemas::json::Json;
use schemas::memory::{Memory, MemoryOwner};

use super::super::MemStore;
use super::{MemoryRec, Row};

#[async_trait]
impl MemoryTail for MemStore {
    async fn tail(&self, owner: &MemoryOwner, after: Option<&MemoryId>, limit: usize) -> Result<Vec<TailRow>, Failure> {
        let corpus = self.corpus(owner);
        let rows = corpus.0.iter().filter(|(id, row)| !row.is_light && after.is_none_or(|after| *id > after));
        Ok(rows.map(|(id, row)| (id.clone(), row.rec.as_ref().map(candidate))).take(limit).collect())
    }

    async fn some(&self, owner: &MemoryOwner, ids: &[&MemoryId]) -> Result<Vec<Memory>, Failure> {
        let live = self.corpus(owner).live();
        Ok(live.iter().filter(|rec| ids.contains(&&rec.memory.id)).map(MemoryRec::shown).collect())
    }

    async fn waiting_rows(
        &self,
        after: Option<&Revision>,
        limit: usize,
    ) -> Result<Vec<Result<KeptMemory, (Revision, Failure)>>, Failure> {
        let rows = self.rows(after, |row| row.kept_at_ms.is_none());
        let kept = |(at, row): (Revision, Row)| {
            let embedding = row.rec.as_ref().and_then(|rec| rec.embedding.clone());
            let memory = row.rec.map(|rec| rec.memory);
            KeptMemory { owner: at.owner, id: at.id, revision: at.revision, memory, embedding }
        };
        Ok(rows.into_iter().take(limit).map(kept).map(Ok).collect())
    }

    async fn mark_kept(&self, kept: &[Revision]) -> Result<(), Failure> {
        let now_ms = self.now_ms();
        let mut state = self.transaction();
        for kept in kept {
            let row = state.memories.get_mut(&kept.owner).and_then(|corpus| corpus.0.get_mut(&kept.id));
            if let Some(row) = row.filter(|row| row.revision == kept.revision) {
                row.kept_at_ms = Some(now_ms);
            }
        }
        Ok(())
    }

    async fn lighten(&self, older_than_ms: u64, near: usize, limit: usize) -> Result<u64, Failure> {
        let before_ms = self.now_ms().saturating_sub(i64::try_from(older_than_ms).unwrap_or(i64::MAX));
        let mut state = self.transaction();
        let corpora = state.memories.values_mut();
        let rows = corpora.flat_map(|corpus| {
            let is_far = corpus.0.len() > near;
            corpus.0.values_mut().map(move |row| (is_far, row))
        });
        let heavy = rows.filter(|(_, row)| !row.is_light && row.kept_at_ms.is_some_and(|at| at <= before_ms));
        let mut lightened = 0;
        for (is_far, row) in heavy.take(limit) {
            row.is_light = true;
            if let Some(rec) = &mut row.rec {
                rec.embedding = rec.embedding.take().filter(|_| !is_far);
                if rec.memory.content_ref.is_some() {
                    rec.memory.content.clear();
                }
            }
            lightened += 1;
        }
        Ok(lightened)
    }

    async fn is_near(&self, owner: &MemoryOwner, near: usize) -> Result<bool, Failure> {
        let corpus = self.corpus(owner);
        let lost = |rec: &MemoryRec| rec.embedding.is_none() && rec.memory.embedding_model.is_some();
        Ok(corpus.0.len() <= near && !corpus.0.values().filter_map(|row| row.rec.as_ref()).any(lost))
    }

    async fn lacking(&self, model: &str, after: Option<&ModelOf>) -> Result<Option<ModelOf>, Failure> {
        let rows = self.rows(None, |row| row.rec.is_some()).into_iter();
        let of = rows.filter_map(|(at, row)| Some(ModelOf { model: row.rec?.memory.embedding_model, owner: at.owner }));
        let wanted = of.filter(|of| of.model.as_deref() != Some(model) && after.is_none_or(|after| of > after));
        Ok(wanted.min())
    }

    async fn settled(&self, after: Option<&Revision>, limit: usize) -> Result<Vec<Revision>, Failure> {
        Ok(self.rows(after, |row| row.is_light).into_iter().take(limit).map(|(at, _)| at).collect())
    }
}

impl MemStore {
    /// Rows of all agents, ascending by owner and id.
    fn rows(&self, after: Option<&Revision>, which: impl Fn(&Row) -> bool) -> Vec<(Revision, Row)> {
        let state = self.transaction();
        let mut rows = Vec::new();
        for (owner, corpus) in &state.memories {
            for (id, row) in &corpus.0 {
                if which(row) && after.is_none_or(|after| (owner, id) > (&after.owner, &after.id)) {
                    let at = Revision { owner: owner.clone(), id: id.clone(), revision: row.revision };
                    rows.push((at, row.clone()));
                }
            }
        }
        rows
    }
}

fn candidate(rec: &MemoryRec) -> Candidate {
    let memory = &rec.memory;
    Candidate {
        id: memory.id.clone(),
        tier: memory.tier,
        kind: memory.kind.clone(),
        significance: memory.significance,
        metadata: Json::of(&memory.metadata).as_str().to_owned(),
        updated_at_ms: memory.updated_at_ms,
        text: format!("{} {}", memory.label.as_deref().unwrap_or_default(), rec.beginning),
        embedding: rec.embedding.clone(),
    }
}
