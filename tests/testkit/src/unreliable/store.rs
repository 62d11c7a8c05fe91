//! Ledger, registry, commits, journal and archive through faults.

mod archive;
mod journal;
mod ledger;
mod sessions;

use async_trait::async_trait;
use domain::commit::{Commit, CommitResult};
use domain::failure::Failure;
use domain::ports::Commits;
use schemas::id::WorkerId;

use super::{Port, Unreliable};

#[async_trait]
impl<P: Commits + ?Sized> Commits for Unreliable<P> {
    async fn commit(&self, owner: &WorkerId, commits: Vec<Commit>) -> Result<Vec<CommitResult>, Failure> {
        self.faults.call(Port::Commits, "commits.commit", self.inner.commit(owner, commits)).await
    }
}
