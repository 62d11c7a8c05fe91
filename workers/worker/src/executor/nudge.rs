//! Telling an executor of the same process that there is work, so that it need not look.

use std::sync::Arc;

use async_trait::async_trait;
use domain::commit::{Commit, CommitResult};
use domain::failure::Failure;
use domain::ports::Commits;
use domain::tool::POOL;
use schemas::conversation::OperationKind;
use schemas::id::WorkerId;
use tokio::sync::Notify;

/// A hint: an executor that is not told looks by itself a little later.
#[derive(Debug, Clone, Default)]
pub struct Nudge(Arc<Notify>);

impl Nudge {
    pub fn tell(&self) {
        self.0.notify_one();
    }

    pub(super) async fn told(&self) {
        self.0.notified().await;
    }
}

/// Commits that tell it when they dispatched something to the fleet's own executors.
pub struct NudgingCommits {
    inner: Arc<dyn Commits>,
    nudge: Nudge,
}

impl NudgingCommits {
    pub fn new(inner: Arc<dyn Commits>, nudge: Nudge) -> Self {
        Self { inner, nudge }
    }
}

#[async_trait]
impl Commits for NudgingCommits {
    async fn commit(&self, owner: &WorkerId, commits: Vec<Commit>) -> Result<Vec<CommitResult>, Failure> {
        let operations = commits.iter().flat_map(|commit| &commit.talk.operations);
        let dispatches = operations
            .into_iter()
            .any(|one| one.kind == OperationKind::Task && one.pool == POOL && one.state.is_open());
        let results = self.inner.commit(owner, commits).await;
        if dispatches {
            self.nudge.tell();
        }
        results
    }
}
