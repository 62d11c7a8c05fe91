//! What the auditor reads of a turn: what it waits for, and who works on that.

use domain::audit::{Child, WorkFinding, child_of, judge_work};
use domain::failure::Failure;
use domain::ports::{OperationQuery, OperationRow};
use schemas::conversation::{OperationKind, OperationState, Turn};
use schemas::id::{ConversationId, SessionKey};
use schemas::limits::LEASE_MS;

use crate::runner::Shared;

/// Operations of one query; a turn has far fewer.
const OPEN_MAX: usize = 1_000;
/// Older heartbeats are of workers that are gone.
const WORKER_AGE_MS: i64 = 3 * LEASE_MS as i64;

/// Whether a live worker is known that runs operations.
pub(super) async fn has_executor(shared: &Shared) -> Result<bool, Failure> {
    let workers = shared.deps.leases.workers(WORKER_AGE_MS).await?;
    Ok(workers.iter().any(|worker| worker.runs_operations()))
}

/// The open operations of a turn.
pub(super) async fn open_work(shared: &Shared, key: &SessionKey, turn: &Turn) -> Result<Vec<OperationRow>, Failure> {
    let of = |state| OperationQuery { turn_id: Some(turn.turn_id.clone()), ..open_of(key, None, state) };
    open(shared, key, [of(OperationState::Pending), of(OperationState::Running)]).await
}

/// Whether the session asks a person something, for whichever of its turns.
pub(super) async fn asks(shared: &Shared, key: &SessionKey, turn: &Turn) -> Result<bool, Failure> {
    let of = open_of(key, Some(&turn.conversation_id), OperationState::Pending);
    let questions = open(shared, key, [OperationQuery { kind: Some(OperationKind::Approval), ..of }]).await?;
    Ok(!questions.is_empty())
}

/// Whether work that a session waits for is under way: an executor, another agent or a person will end it.
pub(super) async fn has_open_work(shared: &Shared, key: &SessionKey) -> Result<bool, Failure> {
    let row = shared.deps.sessions.session(key).await?;
    let Some(conversation) = row.and_then(|row| row.spec.conversation_id) else { return Ok(false) };
    let of = |state| open_of(key, Some(&conversation), state);
    let found = open(shared, key, [of(OperationState::Pending), of(OperationState::Running)]).await?;
    Ok(!found.is_empty())
}

/// What an open operation says, and how far the session is that works on it.
pub(super) async fn judge(
    shared: &Shared,
    row: &OperationRow,
    has_executor: bool,
    now_ms: i64,
) -> Result<(WorkFinding, u64), Failure> {
    let operation = &row.operation;
    let by_time = judge_work(operation, Child::None, has_executor, now_ms);
    // Where its session is has no part in that: it may go on and on.
    let Some(id) = child_of(operation).filter(|_| by_time == WorkFinding::Fine) else { return Ok((by_time, 0)) };
    let key = SessionKey::new(row.namespace.clone(), id.clone());
    let Some(worker) = shared.deps.sessions.session(&key).await? else {
        return Ok((judge_work(operation, Child::Missing(&id), has_executor, now_ms), 0));
    };
    let has_pending = shared.deps.ledger.pending_count(&key).await? > 0;
    let child = Child::There { id: &id, head: &worker.head, has_pending };
    Ok((judge_work(operation, child, has_executor, now_ms), worker.head.next_offset))
}

fn open_of(key: &SessionKey, conversation: Option<&ConversationId>, state: OperationState) -> OperationQuery {
    OperationQuery {
        namespace: key.namespace.clone(),
        conversation_id: conversation.cloned(),
        turn_id: None,
        kind: None,
        state: Some(state),
        after: None,
        limit: OPEN_MAX,
    }
}

/// What the queries find that is the session's own.
async fn open<const N: usize>(
    shared: &Shared,
    key: &SessionKey,
    queries: [OperationQuery; N],
) -> Result<Vec<OperationRow>, Failure> {
    let mut found = Vec::new();
    for query in queries {
        let rows = shared.deps.operations.operations(&query).await?;
        found.extend(rows.into_iter().filter(|row| row.operation.session_id == key.session_id));
    }
    Ok(found)
}
