//! What an oracle may see that no port shows.

use std::sync::Arc;

use domain::effect::{EffectRow, EffectState};
use schemas::action::Lane;
use schemas::conversation::LogRow;
use schemas::id::{ActionId, ConversationId, Namespace, SessionKey, WorkerId};
use schemas::record::{Entry, JournalRow};
use schemas::session::SessionRow;

use super::MemStore;
use super::state::{ActionRec, Claimed, Committed};

impl MemStore {
    pub fn all_sessions(&self) -> Vec<SessionRow> {
        self.transaction().sessions.values().cloned().collect()
    }

    pub fn all_actions(&self) -> Vec<ActionRec> {
        self.transaction().actions.values().cloned().collect()
    }

    /// Unprocessed actions: session, lane, place, id.
    pub fn open_actions(&self) -> Vec<(SessionKey, Lane, u64, ActionId)> {
        let state = self.transaction();
        state.open.iter().map(|((_, key, lane, seq), id)| (key.clone(), *lane, *seq, id.clone())).collect()
    }

    pub fn journal_rows(&self) -> Vec<JournalRow> {
        self.transaction().journal.values().cloned().collect()
    }

    /// Sessions that were found without a cause and made due again.
    pub fn rearmed(&self) -> Vec<SessionKey> {
        self.transaction().rearmed.clone()
    }

    /// The process of a worker ends, and the database sees its connections close.
    pub fn process_ended(&self, worker: WorkerId) {
        self.transaction().gone.insert(worker);
    }

    /// A newer release brings the database to its own schema.
    pub fn migrated_to(&self, version: i64) {
        self.transaction().newer_schema = Some(version);
    }

    /// Every commit since the beginning.
    pub fn commit_log(&self) -> Vec<Committed> {
        self.transaction().commit_log.clone()
    }

    /// Number of commits so far.
    pub fn commit_count(&self) -> usize {
        self.transaction().commit_log.len()
    }

    /// Whether this very entry has been committed.
    pub fn is_committed(&self, entry: &Arc<Entry>) -> bool {
        self.transaction().commit_log.iter().rev().any(|commit| Arc::ptr_eq(&commit.entry, entry))
    }

    /// Commits refused so far: by the fence, and by the guard of a session.
    pub fn refused_commits(&self) -> (u64, u64) {
        let state = self.transaction();
        (state.fenced, state.conflicts)
    }

    /// Every claim since the beginning.
    pub fn claim_log(&self) -> Vec<Claimed> {
        self.transaction().claim_log.clone()
    }

    /// Committed steps of a session: the iteration that may be performed now.
    pub fn steps_of(&self, key: &SessionKey) -> Option<u64> {
        self.transaction().sessions.get(key).map(|row| row.head.steps)
    }

    pub fn effect_row(&self, key: &str) -> Option<EffectRow> {
        self.transaction().effects.get(key).map(|(_, row)| row.clone())
    }

    pub fn effect_is_open(&self, key: &str) -> bool {
        self.effect_row(key).is_some_and(|row| row.state == EffectState::Sent)
    }

    /// The log of a conversation, all of it.
    pub fn whole_log(&self, namespace: &Namespace, conversation: &ConversationId) -> Vec<LogRow> {
        let state = self.transaction();
        let rec = state.conversations.get(&(namespace.clone(), conversation.clone()));
        rec.map(|rec| rec.log.clone()).unwrap_or_default()
    }

    /// Whether the log of a conversation has a record with this id.
    pub fn has_record(&self, namespace: &Namespace, conversation: &ConversationId, id: &str) -> bool {
        let state = self.transaction();
        let rec = state.conversations.get(&(namespace.clone(), conversation.clone()));
        rec.is_some_and(|rec| rec.log.iter().any(|row| row.record.id == id))
    }
}
