//! What is said in conversations, on its way to the archive: from the logs in SQL, where it is written and
//! read, to tables of messages, of moves and of records, which have it for good.
//!
//! A conversation notes the first of its records that is not recorded as archived. Its log has no gaps, and
//! is numbered under its row's lock, so one number says it all. Another number says up to where its records are
//! light (`conversation::kept`). `read::ArchivedConversations` is the union of both sides.

use async_trait::async_trait;
use schemas::conversation::LogRow;

use crate::conversation::kept::{KeptBody, KeptRecords, LogPlace, RecordIds, Stretch};
use crate::failure::Failure;

/// A record that waits for the archive. One that cannot be read has a place all the same, and a reason.
pub type UnarchivedRow = (LogPlace, Result<LogRow, Failure>);

/// The side of SQL.
#[async_trait]
pub trait TranscriptTail: Send + Sync {
    /// Records that are not recorded as archived, ascending by place, all `> after`; of each log without a
    /// gap. The page has at most `limit` rows and ends before it has more `bytes` of bodies, but only an empty
    /// one is the last. What a record holds fails no other.
    async fn unarchived(
        &self,
        after: Option<&LogPlace>,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<UnarchivedRow>, Failure>;

    /// Records that the archive durably has these. Nothing is passed over: a stretch that begins behind the
    /// first record that waits changes nothing, and neither does one that is recorded already.
    async fn record_archived(&self, stretches: &[Stretch]) -> Result<(), Failure>;

    /// Conversations, ascending, all behind that of `after`: each with the last offset that is recorded as
    /// archived, 0 = none.
    async fn archived_ends(&self, after: Option<&LogPlace>, limit: usize) -> Result<Vec<LogPlace>, Failure>;

    /// Records that are recorded as archived and not as light, as far as their log is at least `older_than_ms`
    /// old by the store's own clock (0: all); pages as of [`unarchived`](Self::unarchived). Bodies that stay in
    /// SQL (of kinds that are not `conversation::kept::HEAVY`) are null.
    async fn heavy_records(
        &self,
        older_than_ms: u64,
        after: Option<&LogPlace>,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<UnarchivedRow>, Failure>;

    /// Makes records light: in place of bodies of `HEAVY` kinds above `RECORD_LIGHT_BYTES_MIN` they have the number
    /// of their bytes. The archive has those durably, and every reader sees them there. A stretch that begins behind
    /// the first record that is heavy changes nothing, nor does one that is light already or not archived.
    async fn lighten_records(&self, stretches: &[Stretch]) -> Result<(), Failure>;
}

/// The side of the archive.
#[async_trait]
pub trait TranscriptArchive: Send + Sync {
    /// Appends what is not there yet; durable when it returns. A repeat changes nothing. At most one writer
    /// succeeds on top of what it knows; another one fails and may repeat.
    async fn add_records(&self, records: KeptRecords) -> Result<(), Failure>;

    /// What there is of one log behind a place, up to an offset; as stored: a double would show.
    async fn record_ids(&self, after: &LogPlace, upto: u64) -> Result<RecordIds, Failure>;

    /// The bodies of these records of one log, as far as there are such, in any order.
    async fn bodies(&self, log: &LogPlace, offsets: &[u64]) -> Result<Vec<KeptBody>, Failure>;
}
