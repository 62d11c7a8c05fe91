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
    /// (only unprocessed ones), follow-ups accepted, effect rows written.
    ///
    /// `Err` leaves it open whether the transaction happened, unless the failure says
    /// `DidNotHappen`. At most one commit per session and call.
    async fn commit(&self, owner: &WorkerId, commits: Vec<Commit>) -> Result<Vec<CommitResult>, Failure>;
}
