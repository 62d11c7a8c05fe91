//! Deliberate breakages of the fakes. A test suite that does not notice one of them proves nothing;
//! `tests/README.md` lists who notices which.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Breakage {
    /// Commits are taken whoever owns the shard.
    DropFence,
    /// Commits are taken whatever head they were decided on.
    DropGuard,
    /// A claim does not raise the epoch.
    ReuseEpoch,
    /// A shard is given away while its lease runs.
    ClaimHeldShard,
    /// A repeated action id makes another row.
    SkipDedupe,
    /// Two actions of a lane get one place.
    RepeatSessionSeq,
    /// One row in many never reaches the journal.
    LoseJournalRow,
    /// One commit in many is confirmed and not written.
    LoseCommit,
    /// Settling actions is forgotten now and then.
    LoseSettlement,
    /// A session's timer is not stored.
    ForgetTimer,
    /// Pending reads leave out the first action.
    HidePending,
    /// The archive appends rows that it has.
    ArchiveTwice,
    /// The archive confirms rows and drops one in many.
    ArchiveLosesRow,
    /// Trimming does not wait for the archive.
    TrimUnarchived,
    /// A session of one namespace is found from another.
    CrossNamespace,
    /// Answers of called agents are not written with the commits that send them.
    LoseAnswer,
    /// Operations are not written with the commits that dispatch them.
    LoseOperation,
}

impl Breakage {
    /// Those that nobody mends, so that the oracle has to object.
    pub const ALL: [Breakage; 15] = [
        Self::DropFence,
        Self::DropGuard,
        Self::ReuseEpoch,
        Self::ClaimHeldShard,
        Self::SkipDedupe,
        Self::RepeatSessionSeq,
        Self::LoseJournalRow,
        Self::LoseCommit,
        Self::LoseSettlement,
        Self::ForgetTimer,
        Self::HidePending,
        Self::ArchiveTwice,
        Self::ArchiveLosesRow,
        Self::TrimUnarchived,
        Self::CrossNamespace,
    ];
}

/// Which breakages are on; shared by the fakes of one fleet.
#[derive(Clone, Default)]
pub struct Breakages(Arc<Mutex<(BTreeSet<Breakage>, u64)>>);

impl Breakages {
    pub fn enable(&self, breakage: Breakage) {
        self.lock().0.insert(breakage);
    }

    pub fn on(&self, breakage: Breakage) -> bool {
        self.lock().0.contains(&breakage)
    }

    /// True on every seventh opportunity, for breakages that strike now and then.
    pub fn strikes(&self, breakage: Breakage) -> bool {
        let mut state = self.lock();
        if !state.0.contains(&breakage) {
            return false;
        }
        state.1 += 1;
        state.1.is_multiple_of(7)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, (BTreeSet<Breakage>, u64)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
