//! The single commit point (invariants S3, E1).

use async_trait::async_trait;
use schemas::id::WorkerId;

use crate::commit::{Commit, CommitResult};
use crate::failure::Failure;

#[async_trait]
pub trait Commits: Send + Sync {
    /// Applies commits of many sessions in one transaction; durable when it returns.
    ///
    /// The results stand in the order of the commits. Per shard: if the row is not held by
    /// `owner` with the commit's epoch, all commits of that shard are `Fenced` and write nothing.
    /// Per session: if its row does not have `expect_steps` steps and `expect_offset` as next
    /// offset, the commit is `Conflict` and writes nothing (a commit that reached the database
    /// twice is noticed here). Otherwise, all of it or nothing: head replaced, journal row
    /// inserted under the shard's next `seq` (without gaps, in commit order), actions settled
    /// (only unprocessed ones), what it says written, follow-ups accepted, effect rows written.
    ///
    /// What it says (`talk`) goes to the conversation of its entry, which is opened if it is missing:
    /// records get the next offsets of its log, in the order of the commits and without gaps, and one
    /// whose id is there already is left out; turns are replaced whole; operations are inserted, or,
    /// if open, take the state given, but nobody's claim is taken back.
    ///
    /// `Err` leaves it open whether the transaction happened, unless the failure says
    /// `DidNotHappen`. At most one commit per session and call; a log without a conversation fails
    /// the call before anything is written.
    async fn commit(&self, owner: &WorkerId, commits: Vec<Commit>) -> Result<Vec<CommitResult>, Failure>;
}
