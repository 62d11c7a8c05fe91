//! The `Journal` port.

use async_trait::async_trait;
use domain::effect::{EffectRow, EffectState};
use domain::failure::Failure;
use domain::ports::{Journal, JournalLag};
use schemas::id::{Namespace, SessionId, SessionKey, Shard};
use schemas::record::JournalRow;

use super::MemStore;
use super::state::State;
use crate::fake::breakage::Breakage;

#[async_trait]
impl Journal for MemStore {
    async fn latest(&self, key: &SessionKey) -> Result<Option<JournalRow>, Failure> {
        Ok(self.transaction().rows_of(key).pop())
    }

    async fn entries(&self, key: &SessionKey, after_offset: u64, limit: usize) -> Result<Vec<JournalRow>, Failure> {
        let mut rows = self.transaction().rows_of(key);
        rows.retain(|row| last_offset(row) > after_offset);
        rows.truncate(limit);
        Ok(rows)
    }

    async fn entries_back(
        &self,
        key: &SessionKey,
        before_offset: u64,
        limit: usize,
    ) -> Result<Vec<JournalRow>, Failure> {
        let mut rows = self.transaction().rows_of(key);
        rows.retain(|row| first_offset(row) < before_offset);
        rows.reverse();
        rows.truncate(limit);
        Ok(rows)
    }

    async fn holding(&self, namespace: &Namespace, sessions: &[SessionId]) -> Result<Vec<SessionId>, Failure> {
        let state = self.transaction();
        let held = |id: &&SessionId| {
            state.journal.values().any(|row| row.key.namespace == *namespace && row.key.session_id == **id)
        };
        Ok(sessions.iter().filter(held).cloned().collect())
    }

    async fn above(&self, shard: Shard, after: u64, limit: usize, bytes: usize) -> Result<Vec<JournalRow>, Failure> {
        let state = self.transaction();
        let (mut rows, mut size) = (Vec::new(), 0);
        for row in state.journal.range((shard, after.saturating_add(1))..=(shard, u64::MAX)).map(|(_, row)| row) {
            size += serde_json::to_vec(&row.entry).map_err(|e| Failure::internal(e.to_string()))?.len();
            rows.push(row.clone());
            if rows.len() == limit || size > bytes {
                break;
            }
        }
        Ok(rows)
    }

    async fn lag(&self) -> Result<Vec<JournalLag>, Failure> {
        let state = self.transaction();
        let shards = state.shards.iter().enumerate();
        Ok(shards
            .map(|(n, rec)| JournalLag { shard: Shard(n as u16), seq: rec.seq, archived_seq: rec.archived_seq })
            .collect())
    }

    async fn mark_archived(&self, shard: Shard, seq: u64) -> Result<(), Failure> {
        if let Some(rec) = self.transaction().shard(shard) {
            rec.archived_seq = rec.archived_seq.max(seq);
        }
        Ok(())
    }

    async fn trim(&self, older_than_ms: u64, before_ms: i64, limit: usize) -> Result<u64, Failure> {
        let committed_before_ms = self.bound_ms(older_than_ms).min(before_ms);
        let early = self.breakages.on(Breakage::TrimUnarchived);
        let mut state = self.transaction();
        let archived = |row: &JournalRow| {
            let rec = state.shards.get(usize::from(row.shard.0));
            early || rec.is_some_and(|rec| row.seq <= rec.archived_seq)
        };
        let old = |row: &&JournalRow| early || row.committed_at_ms < committed_before_ms;
        let places: Vec<(Shard, u64)> = state
            .journal
            .values()
            .filter(old)
            .filter(|row| archived(row))
            .map(|row| (row.shard, row.seq))
            .take(limit)
            .collect();
        for place in &places {
            state.journal.remove(place);
        }
        Ok(places.len() as u64)
    }

    async fn open_effects(&self, key: &SessionKey) -> Result<Vec<EffectRow>, Failure> {
        let state = self.transaction();
        let rows = state.effects.values().filter(|(owner, row)| owner == key && row.state != EffectState::Settled);
        Ok(rows.map(|(_, row)| row.clone()).collect())
    }
}

impl State {
    /// In commit order: a session never changes its shard.
    fn rows_of(&self, key: &SessionKey) -> Vec<JournalRow> {
        let Some(session) = self.sessions.get(key) else { return Vec::new() };
        let shard = self.journal.range((session.shard, 0)..=(session.shard, u64::MAX));
        shard.filter(|(_, row)| row.key == *key).map(|(_, row)| row.clone()).collect()
    }
}

fn offsets(row: &JournalRow) -> impl Iterator<Item = u64> {
    let steps = row.entry.steps.iter().map(|step| step.offset);
    steps.chain(row.entry.events.iter().map(|event| event.offset))
}

/// The last offset of a row; a commit that adds nothing counts as its predecessor's end.
fn last_offset(row: &JournalRow) -> u64 {
    offsets(row).max().unwrap_or(row.entry.head.next_offset - 1)
}

fn first_offset(row: &JournalRow) -> u64 {
    offsets(row).min().unwrap_or(row.entry.head.next_offset)
}
