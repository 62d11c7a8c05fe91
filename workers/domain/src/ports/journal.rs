//! The journal: committed entries that LanceDB does not have yet, plus a grace period.

use async_trait::async_trait;
use schemas::id::{Namespace, SessionId, SessionKey, Shard};
use schemas::record::JournalRow;

use crate::effect::EffectRow;
use crate::failure::Failure;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalLag {
    pub shard: Shard,
    /// Last assigned `seq`.
    pub seq: u64,
    /// All rows up to here are in LanceDB.
    pub archived_seq: u64,
}

impl JournalLag {
    /// Rows that LanceDB does not have yet.
    pub fn rows(&self) -> u64 {
        self.seq.saturating_sub(self.archived_seq)
    }
}

#[async_trait]
pub trait Journal: Send + Sync {
    /// The newest entry of a session, if it is still here.
    async fn latest(&self, key: &SessionKey) -> Result<Option<JournalRow>, Failure>;

    /// Entries of a session in commit order, whose last step or event has `offset > after`; at
    /// most `limit` entries.
    async fn entries(&self, key: &SessionKey, after_offset: u64, limit: usize) -> Result<Vec<JournalRow>, Failure>;

    /// The newest entries of a session, newest first, from `before_offset` (exclusive) backwards.
    async fn entries_back(
        &self,
        key: &SessionKey,
        before_offset: u64,
        limit: usize,
    ) -> Result<Vec<JournalRow>, Failure>;

    /// Those of the given sessions that have an entry here, in any order.
    async fn holding(&self, namespace: &Namespace, sessions: &[SessionId]) -> Result<Vec<SessionId>, Failure>;

    /// Rows of one shard with `seq > after`, ascending; stops after `limit` rows or once
    /// `bytes` are exceeded (at least one row).
    async fn above(&self, shard: Shard, after: u64, limit: usize, bytes: usize) -> Result<Vec<JournalRow>, Failure>;

    async fn lag(&self) -> Result<Vec<JournalLag>, Failure>;

    /// Records that LanceDB durably has all rows of the shard up to `seq`. Never moves backwards.
    async fn mark_archived(&self, shard: Shard, seq: u64) -> Result<(), Failure>;

    /// Deletes archived rows committed at least `older_than_ms` ago by the store's own clock (0: all),
    /// and before `before_ms` (a `committed_at_ms` of the journal, so of the same clock), at most
    /// `limit`; returns how many.
    async fn trim(&self, older_than_ms: u64, before_ms: i64, limit: usize) -> Result<u64, Failure>;

    /// Effect rows of a session that are not settled.
    async fn open_effects(&self, key: &SessionKey) -> Result<Vec<EffectRow>, Failure>;
}
