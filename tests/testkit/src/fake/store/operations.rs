//! The `Operations` port.

use async_trait::async_trait;
use domain::failure::Failure;
use domain::ports::{Claim, Ended, Ending, Hold, OperationQuery, OperationRow, Operations};
use domain::talk::{deadline, later, take};
use schemas::conversation::{Operation, OperationKind, OperationState};
use schemas::id::{Namespace, OperationId};

use super::MemStore;

fn row((namespace, _): &(Namespace, OperationId), operation: &Operation) -> OperationRow {
    OperationRow { namespace: namespace.clone(), operation: operation.clone() }
}

/// Nobody has it any more, and it is due again.
fn let_go(known: &mut Operation, due_at_ms: i64, error: String) {
    known.due_at_ms = due_at_ms;
    known.claimed_by = None;
    known.until_ms = None;
    known.error = Some(error);
}

impl MemStore {
    fn past_their_deadline(&self, kind: OperationKind, limit: usize) -> Vec<OperationRow> {
        let now_ms = self.now_ms();
        let state = self.transaction();
        let of_kind = state.operations.iter().filter(|(_, one)| one.kind == kind);
        let mut found: Vec<_> = of_kind.filter_map(|(place, one)| Some((deadline(one)?, place, one))).collect();
        found.retain(|(deadline_ms, ..)| *deadline_ms <= now_ms);
        found.sort_by_key(|(deadline_ms, place, _)| (*deadline_ms, (*place).clone()));
        found.into_iter().take(limit).map(|(_, place, one)| row(place, one)).collect()
    }
}

#[async_trait]
impl Operations for MemStore {
    async fn claim(&self, pool: &str, claimant: &str, hold: Hold, limit: usize) -> Result<Vec<OperationRow>, Failure> {
        let now_ms = self.now_ms();
        let mut state = self.transaction();
        let is_due = |one: &Operation| {
            one.kind == OperationKind::Task && one.state.is_open() && one.pool == pool && one.due_at_ms <= now_ms
        };
        let due = state.operations.iter().filter(|(_, one)| is_due(one));
        let mut due: Vec<_> = due.map(|(place, one)| (one.due_at_ms, place.clone())).collect();
        due.sort();
        due.truncate(limit);
        let mut claimed = Vec::new();
        for (_, place) in due {
            let Some(known) = state.operations.get_mut(&place) else { continue };
            take(known, claimant, now_ms, hold);
            claimed.push(row(&place, known));
            known.state = OperationState::Running;
        }
        Ok(claimed)
    }

    async fn release(&self, pool: &str) -> Result<u64, Failure> {
        let now_ms = self.now_ms();
        let mut state = self.transaction();
        let is_held = |one: &&mut Operation| {
            one.kind == OperationKind::Task && one.state == OperationState::Running && one.pool == pool
        };
        let mut released = 0;
        for known in state.operations.values_mut().filter(is_held) {
            known.due_at_ms = now_ms;
            known.until_ms = None;
            known.claimed_by = None;
            released += 1;
        }
        Ok(released)
    }

    async fn end(
        &self,
        namespace: &Namespace,
        id: &OperationId,
        claim: Option<Claim<'_>>,
        ended: Ended,
    ) -> Result<Ending, Failure> {
        let now_ms = self.now_ms();
        let place = (namespace.clone(), id.clone());
        let mut state = self.transaction();
        let is_theirs = |known: &Operation| claim.is_none_or(|claim| claim.holds(known));
        match ended {
            Ended::Again { after_ms, error, lost } => {
                let known = state.operations.get_mut(&place).filter(|known| known.state.is_open());
                let Some(known) = known.filter(|known| is_theirs(known)) else { return Ok(Ending::NotOpen) };
                known.state = OperationState::Pending;
                known.lost = known.lost.saturating_add(u32::from(lost));
                let_go(known, later(now_ms, after_ms), error);
                Ok(Ending::Scheduled)
            }
            Ended::Back { after_ms, error } => {
                let known = state.operations.get_mut(&place).filter(|known| known.state == OperationState::Running);
                let Some(known) = known.filter(|known| is_theirs(known)) else { return Ok(Ending::NotOpen) };
                known.state = OperationState::Pending;
                known.attempt = known.attempt.saturating_sub(1);
                let_go(known, later(now_ms, after_ms), error);
                Ok(Ending::Scheduled)
            }
            Ended::Left { after_ms, error } => {
                let known = state.operations.get_mut(&place).filter(|known| known.state == OperationState::Running);
                let Some(known) = known.filter(|known| is_theirs(known)) else { return Ok(Ending::NotOpen) };
                let_go(known, later(now_ms, after_ms), error);
                Ok(Ending::Scheduled)
            }
            Ended::Settled { state: ends_as, action } => {
                let is_open = state.operations.get(&place).is_some_and(|known| known.state.is_open());
                let is_repeat = state.actions.contains_key(&(action.namespace.clone(), action.action_id.clone()));
                if !is_open && !is_repeat {
                    return Ok(Ending::NotOpen);
                }
                let ending = Some((id.clone(), ends_as));
                Ok(Ending::Settled(state.accept_ending(*action, ending, now_ms, &self.breakages)))
            }
        }
    }

    async fn extend(
        &self,
        namespace: &Namespace,
        id: &OperationId,
        claimant: &str,
        hold_ms: u64,
    ) -> Result<bool, Failure> {
        let now_ms = self.now_ms();
        let mut state = self.transaction();
        let Some(known) = state.operations.get_mut(&(namespace.clone(), id.clone())) else { return Ok(false) };
        if known.state != OperationState::Running || known.claimed_by.as_deref() != Some(claimant) {
            return Ok(false);
        }
        let until_ms = later(now_ms, hold_ms);
        known.due_at_ms = until_ms;
        known.until_ms = Some(until_ms);
        Ok(true)
    }

    async fn operation(&self, namespace: &Namespace, id: &OperationId) -> Result<Option<OperationRow>, Failure> {
        let state = self.transaction();
        Ok(state.operations.get_key_value(&(namespace.clone(), id.clone())).map(|(place, one)| row(place, one)))
    }

    async fn operations(&self, query: &OperationQuery) -> Result<Vec<OperationRow>, Failure> {
        let at = |row: &OperationRow| (row.operation.created_at_ms, row.operation.operation_id.clone());
        let state = self.transaction();
        let own = state.operations.iter().filter(|((namespace, _), _)| *namespace == query.namespace);
        let mut found: Vec<OperationRow> = own
            .filter(|(_, one)| query.conversation_id.as_ref().is_none_or(|id| one.conversation_id == *id))
            .filter(|(_, one)| query.turn_id.as_ref().is_none_or(|id| one.turn_id == *id))
            .filter(|(_, one)| query.kind.is_none_or(|kind| one.kind == kind))
            .filter(|(_, one)| query.state.is_none_or(|state| one.state == state))
            .map(|(place, one)| row(place, one))
            .filter(|row| query.after.as_ref().is_none_or(|after| at(row) > *after))
            .collect();
        found.sort_by_key(at);
        found.truncate(query.limit);
        Ok(found)
    }

    async fn expired_approvals(&self, limit: usize) -> Result<Vec<OperationRow>, Failure> {
        let now_ms = self.now_ms();
        let state = self.transaction();
        let is_over = |one: &Operation| {
            one.kind == OperationKind::Approval
                && one.state == OperationState::Pending
                && one.until_ms.is_some_and(|until_ms| until_ms <= now_ms)
        };
        let mut found: Vec<_> = state.operations.iter().filter(|(_, one)| is_over(one)).collect();
        found.sort_by_key(|(place, one)| (one.until_ms, (*place).clone()));
        Ok(found.into_iter().take(limit).map(|(place, one)| row(place, one)).collect())
    }

    async fn untaken(&self, limit: usize) -> Result<Vec<OperationRow>, Failure> {
        Ok(self.past_their_deadline(OperationKind::Task, limit))
    }

    async fn overdue(&self, limit: usize) -> Result<Vec<OperationRow>, Failure> {
        Ok(self.past_their_deadline(OperationKind::Agent, limit))
    }

    async fn waiting_ms(&self, pool: &str) -> Result<Option<u64>, Failure> {
        let now_ms = self.now_ms();
        let state = self.transaction();
        let is_due = |one: &&Operation| {
            one.kind == OperationKind::Task && one.state.is_open() && one.pool == pool && one.due_at_ms <= now_ms
        };
        let first = state.operations.values().filter(is_due).map(|one| one.due_at_ms).min();
        Ok(first.map(|due_at_ms| u64::try_from(now_ms - due_at_ms).unwrap_or(0)))
    }
}
