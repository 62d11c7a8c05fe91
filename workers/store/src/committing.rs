//! What commits are made of, whatever the database: texts made ready, and what may share a
//! transaction.

use std::collections::HashSet;

use domain::commit::{Commit, CommitResult};
use domain::failure::Failure;
use schemas::id::{SessionKey, WorkerId};
use schemas::json::Json;
use schemas::limits::{COMMIT_BATCH_BYTES_MAX, COMMIT_BATCH_MAX, COMMIT_LIGHT_MAX, COMMIT_SETTLED_MAX};

use crate::batch::Batched;

/// A commit with its texts made ready in the caller's task, so that the writer only writes.
pub(crate) struct Prepared {
    pub(crate) commit: Commit,
    pub(crate) owner: WorkerId,
    pub(crate) head: Json,
    pub(crate) body: Json,
}

/// Makes the texts ready. There is at most one commit of a session.
pub(crate) fn prepare(owner: &WorkerId, commits: Vec<Commit>) -> Result<Vec<Prepared>, Failure> {
    let mut sessions = HashSet::with_capacity(commits.len());
    if let Some(twice) = commits.iter().find(|commit| !sessions.insert(&commit.key)) {
        return Err(Failure::internal(format!("two commits of session {} in one call", twice.key)));
    }
    if let Some(mute) = commits.iter().find(|one| !one.talk.log.is_empty() && one.entry.conversation_id.is_none()) {
        return Err(Failure::internal(format!("session {} has no conversation to talk in", mute.key)));
    }
    let prepare = |commit: Commit| Prepared {
        owner: owner.clone(),
        head: Json::of(&commit.entry.head),
        body: Json::of(&*commit.entry),
        commit,
    };
    Ok(commits.into_iter().map(prepare).collect())
}

/// One call of `Commits::commit`.
pub(crate) struct Call {
    pub(crate) commits: Vec<Prepared>,
    bytes: usize,
    settled: usize,
}

impl Call {
    pub(crate) fn new(commits: Vec<Prepared>) -> Self {
        let said = |one: &Prepared| one.commit.talk.log.iter().map(|record| record.body.as_str().len()).sum::<usize>();
        let bytes = commits.iter().map(|one| one.head.as_str().len() + one.body.as_str().len() + said(one)).sum();
        let settled = commits.iter().map(|one| one.commit.settled.len()).sum();
        Self { commits, bytes, settled }
    }
}

#[derive(Default)]
pub(crate) struct Load {
    bytes: usize,
    settled: usize,
    sessions: HashSet<SessionKey>,
}

impl Batched for Call {
    type Answer = Vec<CommitResult>;
    type Load = Load;
    const KIND: Option<&'static str> = Some("commit");

    /// A session's next commit builds on the one before: it goes into the next transaction.
    fn join(&self, load: &mut Load) -> bool {
        let fits = load.sessions.len() + self.commits.len() <= COMMIT_BATCH_MAX
            && load.bytes + self.bytes <= COMMIT_BATCH_BYTES_MAX
            && load.settled + self.settled <= COMMIT_SETTLED_MAX
            && !self.commits.iter().any(|one| load.sessions.contains(&one.commit.key));
        if fits || load.sessions.is_empty() {
            load.bytes += self.bytes;
            load.settled += self.settled;
            load.sessions.extend(self.commits.iter().map(|one| one.commit.key.clone()));
        }
        fits
    }

    /// A change of status is what a person waits for, and it waits for the step that is being
    /// committed: so light commits do not queue behind those of sessions with a backlog.
    fn is_urgent(&self) -> bool {
        let is_light = |one: &Prepared| one.commit.entry.steps.len() + one.commit.settled.len() <= COMMIT_LIGHT_MAX;
        self.commits.iter().any(|one| !one.commit.entry.events.is_empty()) || self.commits.iter().all(is_light)
    }

    fn size(&self) -> usize {
        self.commits.len()
    }
}
