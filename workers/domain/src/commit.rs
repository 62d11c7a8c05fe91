//! All that one commit makes durable, as one value.

use std::sync::Arc;

use schemas::action::{ActionOutcome, NewAction};
use schemas::conversation::Talk;
use schemas::id::{ActionId, Epoch, SessionKey, Shard};
use schemas::problem::Code;
use schemas::record::Entry;

use crate::effect::EffectRow;

/// One session's contribution to a transaction (DESIGN 1, idea 2).
#[derive(Debug, Clone)]
pub struct Commit {
    pub key: SessionKey,
    pub shard: Shard,
    /// Fence: the shard's epoch under which this was decided.
    pub epoch: Epoch,
    /// Guard: the head this commit replaces.
    pub expect_steps: u64,
    pub expect_offset: u64,
    /// New head, new state, new steps and events.
    pub entry: Arc<Entry>,
    /// Actions that end with this commit.
    pub settled: Vec<Settled>,
    /// Actions to other sessions, accepted by this commit: the outbox.
    pub follow_ups: Vec<NewAction>,
    /// Effect rows to insert or to move on.
    pub effects: Vec<EffectRow>,
    /// What it adds to the session's conversation.
    pub talk: Talk,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    pub action_id: ActionId,
    pub outcome: ActionOutcome,
    pub code: Option<Code>,
    pub error: Option<String>,
}

impl Settled {
    pub fn ok(action_id: ActionId) -> Self {
        Self { action_id, outcome: ActionOutcome::Ok, code: None, error: None }
    }

    pub fn rejected(action_id: ActionId, code: Code, error: impl Into<String>) -> Self {
        Self { action_id, outcome: ActionOutcome::Rejected, code: Some(code), error: Some(error.into()) }
    }
}

#[derive(Debug, Clone)]
pub enum CommitResult {
    /// Durable at this place of the shard's journal; the follow-ups got accepted. A commit that leaves
    /// the head as it is (sent again after a doubt, most often) adds no row to the journal: its place
    /// is that of the shard's last row.
    Done { seq: u64, follow_ups: Vec<schemas::action::Action> },
    /// The shard is not ours (any more).
    Fenced,
    /// The session's head is not the expected one: this very commit, or another owner's, is there.
    Conflict,
}
