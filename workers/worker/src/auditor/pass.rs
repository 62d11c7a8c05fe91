//! One walk over all sessions. A finding counts once two walks in a row made it of the same head:
//! head and pending actions are not read in one transaction.

use std::collections::BTreeMap;

use domain::audit::{Finding, OVERDUE_MS, judge, judge_idle};
use domain::failure::Failure;
use domain::invariant::Invariant;
use domain::ports::{OperationQuery, ShardInfo};
use schemas::conversation::OperationState;
use schemas::id::SessionKey;
use schemas::session::{Cause, Head};
use schemas::telemetry::metric;

use crate::runner::Shared;

/// Sessions of one page.
const PAGE: usize = 1_000;
/// Suspects kept from one pass to the next; more are found once these are healed.
const SUSPECTS_MAX: usize = 10_000;

/// Sessions that seem to have no cause, with the `next_offset` they were seen at, and whether the
/// log has them already.
pub(super) type Suspects = BTreeMap<SessionKey, (u64, bool)>;

#[derive(Default)]
pub(super) struct Pass {
    after: Option<SessionKey>,
    pub without_cause: usize,
    pub overdue: usize,
    pub suspects: Suspects,
}

impl Pass {
    /// Audits the next page. Returns whether it was the last.
    pub async fn page(&mut self, shared: &Shared, before: &Suspects) -> Result<bool, Failure> {
        let page = shared.deps.sessions.heads(self.after.as_ref(), PAGE).await?;
        let is_last = page.len() < PAGE;
        let now_ms = shared.deps.clock.now_ms();
        for (key, head) in page {
            match judge(&head, now_ms) {
                Finding::Overdue { .. } => self.overdue += 1,
                Finding::Depends => {
                    let moves = shared.deps.ledger.pending_count(&key).await? > 0
                        || (head.cause == Cause::Operation && has_open_operation(shared, &key).await?);
                    if let Finding::WithoutCause { is_healable } = judge_idle(&head, moves) {
                        self.suspect(shared, before, &key, &head, is_healable).await?;
                    }
                }
                Finding::Fine | Finding::WithoutCause { .. } => {}
            }
            self.after = Some(key);
        }
        Ok(is_last)
    }

    async fn suspect(
        &mut self,
        shared: &Shared,
        before: &Suspects,
        key: &SessionKey,
        head: &Head,
        is_healable: bool,
    ) -> Result<(), Failure> {
        let seen = before.get(key).filter(|(offset, _)| *offset == head.next_offset);
        if seen.is_some() {
            self.without_cause += 1;
        }
        if let Some((_, is_told)) = seen
            && !is_told
        {
            metrics::counter!(metric::INVARIANT_BROKEN, "invariant" => format!("{:?}", Invariant::L1)).increment(1);
        }
        let confirmed = seen.is_some();
        if confirmed && is_healable && shared.deps.sessions.rearm(key, head.next_offset).await? {
            metrics::counter!(metric::SESSIONS_HEALED).increment(1);
            tracing::warn!(session.id = %key, status = head.status.as_str(), cause = ?head.cause,
                "a session had no cause to go on; made it due");
        } else if !is_healable && seen.is_some_and(|(_, is_told)| !is_told) {
            tracing::error!(session.id = %key, status = head.status.as_str(), cause = ?head.cause,
                "a session has no cause to go on and cannot be healed; see the runbook sessions_without_cause");
        }
        if self.suspects.len() < SUSPECTS_MAX {
            self.suspects.insert(key.clone(), (head.next_offset, confirmed));
        }
        Ok(())
    }

    /// Sessions with an action that could have moved them long ago; at most a page of each shard.
    pub async fn overdue_actions(&self, shared: &Shared) -> Result<usize, Failure> {
        let shards = shared.deps.leases.shards().await?;
        let age_ms = OVERDUE_MS.unsigned_abs();
        let mut overdue = 0;
        for ShardInfo { shard, .. } in shards {
            overdue += shared.deps.ledger.sessions_with_pending(shard, age_ms, None, PAGE).await?.len();
        }
        Ok(overdue)
    }
}

/// Whether work that a session waits for is under way: an executor, another agent or a person will end it.
async fn has_open_operation(shared: &Shared, key: &SessionKey) -> Result<bool, Failure> {
    let row = shared.deps.sessions.session(key).await?;
    let Some(conversation_id) = row.and_then(|row| row.spec.conversation_id) else { return Ok(false) };
    for state in [OperationState::Pending, OperationState::Running] {
        let query = OperationQuery {
            namespace: key.namespace.clone(),
            conversation_id: Some(conversation_id.clone()),
            turn_id: None,
            kind: None,
            state: Some(state),
            after: None,
            limit: PAGE,
        };
        let open = shared.deps.operations.operations(&query).await?;
        if open.iter().any(|row| row.operation.session_id == key.session_id) {
            return Ok(true);
        }
    }
    Ok(false)
}
