//! The archive: LanceDB, the home of history. One writer, any number of readers.

use std::collections::BTreeMap;

use async_trait::async_trait;
use schemas::event::EventRecord;
use schemas::id::{AgentId, Namespace, SessionId, SessionKey, Shard};
use schemas::record::{JournalRow, Snapshot, StepStatus, StoredStep};

use crate::failure::Failure;

/// Per shard, the `seq` up to which a table has all rows.
pub type Watermarks = BTreeMap<Shard, u64>;

/// Journal rows to append, ascending by `(shard, seq)`, without gaps within a shard.
#[derive(Debug, Clone, Default)]
pub struct ArchiveBatch {
    pub rows: Vec<JournalRow>,
}

/// The place of a step in the order of a query: a page ends at one, the next begins after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepPlace {
    pub iteration: u64,
    pub created_at_ms: i64,
    pub session_id: SessionId,
}

/// Which steps, in which order (SPEC Q-TAB-06…08). All given conditions must hold.
///
/// [`StepQuery::matches`] and [`StepQuery::compare`] say what the fields mean.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StepQuery {
    pub namespace: Option<Namespace>,
    pub session: Option<SessionKey>,
    pub agent_id: Option<AgentId>,
    pub min_iteration: Option<u64>,
    pub max_iteration: Option<u64>,
    pub since_ms: Option<i64>,
    pub status: Option<StepStatus>,
    /// Only what follows this place in the order of the query.
    pub after: Option<StepPlace>,
    /// By `(created_at, iteration, session)` instead of `(iteration, created_at, session)`.
    pub by_time: bool,
    /// Descending instead of ascending.
    pub descending: bool,
    pub offset: usize,
    pub limit: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct EventRow {
    pub key: SessionKey,
    pub event: EventRecord,
}

#[async_trait]
pub trait Archive: Send + Sync {
    /// Appends a batch to all tables: steps, events, snapshots. Rows at or below a table's own
    /// watermark are skipped for that table, so a repeat after a crash adds nothing. Durable, and
    /// its watermark with it, when this returns.
    async fn append(&self, batch: &ArchiveBatch) -> Result<(), Failure>;

    /// Up to where every table has everything. Once `append` has returned, no less than its batch.
    async fn watermarks(&self) -> Result<Watermarks, Failure>;

    /// Steps in the order of the query; filter, then order, then offset and limit. More than
    /// `limits::PAGE_BYTES_MAX` of them fail with the code `too_large`: ask for fewer.
    async fn steps(&self, query: &StepQuery) -> Result<Vec<StoredStep>, Failure>;

    /// Events (not steps) of a session with `after < offset`, ascending, at most `limit`.
    async fn events(&self, key: &SessionKey, after: u64, limit: usize) -> Result<Vec<EventRow>, Failure>;

    /// Steps of a session with `after < offset`, ascending by offset, at most `limit`.
    async fn steps_after_offset(&self, key: &SessionKey, after: u64, limit: usize) -> Result<Vec<StoredStep>, Failure>;

    async fn snapshot(&self, key: &SessionKey) -> Result<Option<Snapshot>, Failure>;

    /// Compaction, index upkeep and pruning of old versions, as far as they are due.
    async fn maintain(&self) -> Result<(), Failure>;

    /// A cheap read that fails when the archive is not usable.
    async fn ping(&self) -> Result<(), Failure>;
}
