//! The `Ledger` port.

use async_trait::async_trait;
use domain::failure::Failure;
use domain::ports::{Ledger, LedgerStats, Pending, Verdict};
use domain::time::rfc3339;
use schemas::action::{Action, ActionType, ActionView, Lane, NewAction};
use schemas::id::{ActionId, Namespace, SessionId, SessionKey, Shard};
use schemas::session::SessionStatus;

use super::MemStore;
use super::state::{ActionRec, State};
use crate::fake::breakage::Breakage;

#[async_trait]
impl Ledger for MemStore {
    async fn accept(&self, actions: Vec<NewAction>) -> Result<Vec<Verdict>, Failure> {
        let now = self.now_ms();
        let mut state = self.transaction();
        Ok(actions.into_iter().map(|new| state.accept(new, now, &self.breakages)).collect())
    }

    async fn action(&self, namespace: &Namespace, id: &ActionId) -> Result<Option<ActionView>, Failure> {
        Ok(self.transaction().actions.get(&(namespace.clone(), id.clone())).map(view))
    }

    async fn pending(&self, key: &SessionKey, lane: Lane, after: u64, limit: usize) -> Result<Pending, Failure> {
        let state = self.transaction();
        let Some(row) = state.sessions.get(key) else {
            return Ok(Pending { actions: Vec::new(), last_seq: 0 });
        };
        let place = |seq| (row.shard, key.clone(), lane, seq);
        let mut actions: Vec<Action> = state
            .open
            .range(place(after.saturating_add(1))..=place(u64::MAX))
            .take(limit)
            .filter_map(|(_, id)| state.open_action(&key.namespace, id))
            .collect();
        if self.breakages.strikes(Breakage::HidePending) && !actions.is_empty() {
            actions.remove(0);
        }
        let last_seq = match lane {
            Lane::Control => row.control_seq,
            Lane::Work => row.work_seq,
        };
        Ok(Pending { actions, last_seq })
    }

    async fn pending_count(&self, key: &SessionKey) -> Result<u64, Failure> {
        Ok(self.transaction().open.keys().filter(|place| place.1 == *key).count() as u64)
    }

    async fn sessions_with_pending(
        &self,
        shard: Shard,
        older_than_ms: u64,
        after: Option<(Namespace, SessionId)>,
        limit: usize,
    ) -> Result<Vec<SessionKey>, Failure> {
        let accepted_before_ms = self.bound_ms(older_than_ms);
        let state = self.transaction();
        let after = after.map(|(namespace, session)| SessionKey::new(namespace, session));
        let mut found: Vec<SessionKey> = Vec::new();
        for ((at, key, _, _), id) in &state.open {
            let wanted = *at == shard && after.as_ref().is_none_or(|after| key > after) && found.last() != Some(key);
            let counts =
                |action: &Action| action.accepted_at_ms < accepted_before_ms && state.can_move(key, action.kind);
            if wanted && state.open_action(&key.namespace, id).as_ref().is_some_and(counts) {
                found.push(key.clone());
                if found.len() == limit {
                    break;
                }
            }
        }
        Ok(found)
    }

    async fn mark_published(&self, actions: &[(Namespace, ActionId)]) -> Result<(), Failure> {
        let now = self.now_ms();
        let mut state = self.transaction();
        for place in actions {
            if let Some(rec) = state.actions.get_mut(place) {
                rec.published_at_ms.get_or_insert(now);
            }
        }
        Ok(())
    }

    async fn unpublished(&self, older_than_ms: u64, limit: usize) -> Result<Vec<Action>, Failure> {
        let accepted_before_ms = self.bound_ms(older_than_ms);
        let state = self.transaction();
        let mut found: Vec<Action> = state
            .actions
            .values()
            .filter(|rec| !rec.is_processed() && rec.published_at_ms.is_none())
            .filter(|rec| rec.accepted_at_ms < accepted_before_ms)
            .filter_map(|rec| rec.action.clone())
            .collect();
        found.sort_by_key(|action| (action.accepted_at_ms, action.session_seq));
        found.truncate(limit);
        Ok(found)
    }

    async fn forget_processed(&self, older_than_ms: u64, limit: usize) -> Result<u64, Failure> {
        let processed_before_ms = self.bound_ms(older_than_ms);
        let mut state = self.transaction();
        let old = |rec: &ActionRec| rec.processed_at_ms.is_some_and(|at| at < processed_before_ms);
        let places: Vec<_> =
            state.actions.iter().filter(|(_, rec)| old(rec)).map(|(place, _)| place.clone()).take(limit).collect();
        for place in &places {
            state.actions.remove(place);
        }
        Ok(places.len() as u64)
    }

    async fn stats(&self) -> Result<LedgerStats, Failure> {
        let state = self.transaction();
        let open = state.open.iter();
        let actions = open.filter_map(|((_, key, _, _), id)| Some((key, state.open_action(&key.namespace, id)?)));
        let late = actions.filter(|(key, action)| state.can_move(key, action.kind));
        let oldest_ms = late.map(|(_, action)| action.accepted_at_ms).min();
        Ok(LedgerStats { pending: state.open.len() as u64, oldest_ms })
    }

    async fn backlog(&self, shards: &[Shard]) -> Result<Vec<(Shard, u64)>, Failure> {
        let state = self.transaction();
        let of = |shard: &Shard| state.open.keys().filter(|(other, ..)| other == shard).count() as u64;
        Ok(shards.iter().map(|shard| (*shard, of(shard))).collect())
    }
}

impl State {
    /// Guidance and work wait while their session is paused or in error.
    fn can_move(&self, key: &SessionKey, kind: ActionType) -> bool {
        let waits = self
            .sessions
            .get(key)
            .is_some_and(|row| matches!(row.head.status, SessionStatus::Paused | SessionStatus::Error));
        !waits || matches!(kind, ActionType::Pause | ActionType::Resume | ActionType::Destroy)
    }

    fn open_action(&self, namespace: &Namespace, id: &ActionId) -> Option<Action> {
        self.actions.get(&(namespace.clone(), id.clone()))?.action.clone()
    }
}

fn view(rec: &ActionRec) -> ActionView {
    let action = rec.action.as_ref();
    ActionView {
        action_id: rec.action_id.clone(),
        kind: rec.kind,
        session_id: action.map(|action| action.session_id.clone()).or_else(|| rec.asked.session_id.clone()),
        agent_id: action.map(|action| action.agent_id.clone()).or_else(|| rec.asked.agent_id.clone()),
        shard: action.map(|action| action.shard),
        lane: rec.kind.lane(),
        session_seq: action.map(|action| action.session_seq),
        urgency: rec.asked.urgency,
        actor: rec.asked.actor.clone(),
        payload: rec.asked.payload.clone(),
        metadata: rec.asked.metadata.clone(),
        created_at: rfc3339(rec.accepted_at_ms),
        published_at: rec.published_at_ms.map(rfc3339),
        processed: rec.is_processed(),
        processed_at: rec.processed_at_ms.map(rfc3339),
        outcome: rec.outcome,
        code: rec.code,
        error: rec.error.clone(),
    }
}
