//! The tables.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use domain::commit::Settled;
use domain::effect::EffectRow;
use domain::ports::{TokenRow, WorkerInfo};
use schemas::action::{Action, ActionOutcome, ActionType, Lane, NewAction};
use schemas::conversation::{Operation, Turn};
use schemas::definition::DefinitionKind;
use schemas::id::{
    ActionId, AgentId, ConversationId, DefinitionId, Epoch, Namespace, OperationId, SessionId, SessionKey, Shard,
    TurnId, WorkerId,
};
use schemas::memory::MemoryOwner;
use schemas::problem::Code;
use schemas::record::{Entry, JournalRow};
use schemas::session::SessionRow;

use super::conversations::ConversationRec;
use super::definitions::DefinitionRec;
use super::memories::Corpus;

/// A ledger row. Without `action` it is the record of a refusal.
#[derive(Debug, Clone)]
pub struct ActionRec {
    pub namespace: Namespace,
    pub action_id: ActionId,
    pub kind: ActionType,
    pub asked: NewAction,
    pub action: Option<Action>,
    pub accepted_at_ms: i64,
    pub published_at_ms: Option<i64>,
    pub processed_at_ms: Option<i64>,
    pub outcome: Option<ActionOutcome>,
    pub code: Option<Code>,
    pub error: Option<String>,
}

/// A commit as it happened: never trimmed, for the oracle alone.
#[derive(Debug, Clone)]
pub struct Committed {
    pub shard: Shard,
    pub seq: u64,
    pub epoch: Epoch,
    pub owner: WorkerId,
    pub key: SessionKey,
    pub at_ms: i64,
    pub entry: Arc<Entry>,
    /// Actions that this commit settled.
    pub settled: Vec<Settled>,
    /// Actions it wanted to settle that were settled before, or are unknown.
    pub settled_again: Vec<ActionId>,
    pub follow_ups: Vec<ActionId>,
}

/// A change of ownership, for the oracle alone.
#[derive(Debug, Clone)]
pub struct Claimed {
    pub shard: Shard,
    pub epoch: Epoch,
    pub owner: WorkerId,
    pub at_ms: i64,
    /// The lease that was still running, if the claim should not have been granted.
    pub taken_from: Option<WorkerId>,
}

#[derive(Debug, Clone)]
pub(super) struct ShardRec {
    pub owner: Option<WorkerId>,
    pub epoch: i64,
    pub lease_until_ms: i64,
    pub seq: u64,
    pub archived_seq: u64,
}

#[derive(Debug, Clone, Default)]
pub(super) struct RoleRec {
    pub owner: Option<WorkerId>,
    pub epoch: i64,
    pub lease_until_ms: i64,
}

/// Place of an unprocessed action.
pub(super) type OpenKey = (Shard, SessionKey, Lane, u64);

pub(super) struct State {
    pub shards: Vec<ShardRec>,
    pub roles: BTreeMap<String, RoleRec>,
    pub workers: BTreeMap<WorkerId, (WorkerInfo, i64)>,
    pub sessions: BTreeMap<SessionKey, SessionRow>,
    pub latest: BTreeMap<(Namespace, AgentId), SessionId>,
    pub actions: BTreeMap<(Namespace, ActionId), ActionRec>,
    pub open: BTreeMap<OpenKey, ActionId>,
    pub journal: BTreeMap<(Shard, u64), JournalRow>,
    pub effects: BTreeMap<String, (SessionKey, EffectRow)>,
    pub tokens: BTreeMap<String, TokenRow>,
    pub definitions: BTreeMap<(Namespace, DefinitionKind, DefinitionId), DefinitionRec>,
    pub conversations: BTreeMap<(Namespace, ConversationId), ConversationRec>,
    pub turns: BTreeMap<(Namespace, TurnId), Turn>,
    pub operations: BTreeMap<(Namespace, OperationId), Operation>,
    pub memories: BTreeMap<MemoryOwner, Corpus>,
    pub commit_log: Vec<Committed>,
    pub claim_log: Vec<Claimed>,
    /// Sessions that had to be made due again, for the oracle alone.
    pub rearmed: Vec<SessionKey>,
    /// Workers whose process has ended, as the database sees it.
    pub gone: BTreeSet<WorkerId>,
    /// Of a newer release than all who ask.
    pub newer_schema: Option<i64>,
    pub fenced: u64,
    pub conflicts: u64,
}

impl State {
    pub fn new(shards: u16) -> Self {
        let shard = ShardRec { owner: None, epoch: 0, lease_until_ms: i64::MIN, seq: 0, archived_seq: 0 };
        Self {
            shards: vec![shard; usize::from(shards)],
            roles: BTreeMap::new(),
            workers: BTreeMap::new(),
            sessions: BTreeMap::new(),
            latest: BTreeMap::new(),
            actions: BTreeMap::new(),
            open: BTreeMap::new(),
            journal: BTreeMap::new(),
            effects: BTreeMap::new(),
            tokens: BTreeMap::new(),
            definitions: BTreeMap::new(),
            conversations: BTreeMap::new(),
            turns: BTreeMap::new(),
            operations: BTreeMap::new(),
            memories: BTreeMap::new(),
            commit_log: Vec::new(),
            claim_log: Vec::new(),
            rearmed: Vec::new(),
            gone: BTreeSet::new(),
            newer_schema: None,
            fenced: 0,
            conflicts: 0,
        }
    }

    pub fn shard(&mut self, shard: Shard) -> Option<&mut ShardRec> {
        self.shards.get_mut(usize::from(shard.0))
    }
}

impl ActionRec {
    pub fn is_processed(&self) -> bool {
        self.processed_at_ms.is_some()
    }

    pub(super) fn open_key(&self) -> Option<OpenKey> {
        let action = self.action.as_ref()?;
        Some((action.shard, action.key(), action.lane(), action.session_seq))
    }
}
