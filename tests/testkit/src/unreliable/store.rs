//! Ledger, registry, commits, journal, conversations, operations and archive through faults.

mod archive;
mod conversations;
mod journal;
mod ledger;
mod operations;
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
        let places: Vec<String> = commits.iter().map(place).collect();
        let commit = async {
            let results = self.inner.commit(owner, commits).await?;
            for (place, result) in places.iter().zip(&results) {
                self.faults.note(format!("{place} {}", name_of(result)));
            }
            Ok(results)
        };
        self.faults.call(Port::Commits, "commits.commit", commit).await
    }
}

fn place(commit: &Commit) -> String {
    let (steps, events) = (commit.entry.steps.len(), commit.entry.events.len());
    let Commit { key, shard, epoch, expect_steps, expect_offset, .. } = commit;
    format!("commit of {key} on {shard} {epoch} at step {expect_steps}, offset {expect_offset}: +{steps} +{events}")
}

fn name_of(result: &CommitResult) -> &'static str {
    match result {
        CommitResult::Done { .. } => "is done",
        CommitResult::Fenced => "is fenced",
        CommitResult::Conflict => "conflicts",
    }
}
