//! Whether an active turn has a cause to stand where it stands: what it waits for is held against what there is
//! of it.

#[cfg(test)]
mod tests;

use schemas::conversation::{Operation, OperationKind, OperationState, Turn, TurnPhase};
use schemas::id::SessionId;
use schemas::limits::{AGENT_MS_DEFAULT, APPROVAL_S_MAX, TASK_UNTAKEN_S_DEFAULT};
use schemas::session::{Cause, Head, SessionStatus};
use serde_json::Value;

use super::OVERDUE_MS;
use crate::chat::{ToolError, ToolErrorCode};
use crate::converse::works_on;
use crate::talk::{deadline, later};
use crate::tool::{POOL, out_of_time};

/// An operation that executors could have begun this long ago is not taken, if no worker is known that does so.
const UNTAKEN_MS: i64 = 10_000;

/// What a turn and its session say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnFinding {
    Fine,
    /// Its session could go on with it and waits for somebody else: woken, it does.
    Asleep,
    /// Its session has ended, or is not there: nobody ends the turn any more.
    Abandoned,
    /// That depends on its open operations: judge each with [`judge_work`].
    Waits,
}

/// Whether a turn is worth a look. Young ones are worked on, unless they wait for somebody.
pub fn is_suspect(turn: &Turn, now_ms: i64) -> bool {
    turn.phase.is_waiting() || now_ms.saturating_sub(turn.created_at_ms) > OVERDUE_MS
}

/// Judges by the turn and its session. `has_pending`: actions are on their way to the session.
pub fn judge_turn(turn: &Turn, head: Option<&Head>, has_pending: bool) -> TurnFinding {
    let Some(head) = head.filter(|head| !head.status.is_final()) else { return TurnFinding::Abandoned };
    // What is paused, failed or about to end is judged by its head, and who is queued goes on after others.
    if has_pending || head.status != SessionStatus::Running || turn.phase == TurnPhase::Queued {
        return TurnFinding::Fine;
    }
    if turn.phase.is_waiting() {
        return TurnFinding::Waits;
    }
    // While a call of the turn is under way, its session is due.
    let is_asleep = head.wake_at_ms.is_none() && is_idle(head);
    if is_asleep { TurnFinding::Asleep } else { TurnFinding::Fine }
}

/// Whether a turn that waits, with no open operation, waits in vain: no turn of its session is worked on.
/// `asks`: the session asks a person something, which may be for several turns.
pub fn is_forgotten(head: &Head, asks: bool) -> bool {
    !asks && is_idle(head)
}

fn is_idle(head: &Head) -> bool {
    head.status == SessionStatus::Running && matches!(head.cause, Cause::Input | Cause::Operation)
}

/// How the session stands that works on an operation.
#[derive(Debug, Clone, Copy)]
pub enum Child<'h> {
    /// No session works on it, or none is named.
    None,
    Missing(&'h SessionId),
    There {
        id: &'h SessionId,
        head: &'h Head,
        has_pending: bool,
    },
}

/// What an open operation of a turn that waits says.
#[derive(Debug, Clone, PartialEq)]
pub enum WorkFinding {
    Fine,
    /// It could have been begun more than a minute ago; executors are there, and busy or stuck.
    Late,
    /// It could have been begun, and no worker is known that runs operations.
    WithoutExecutor,
    /// Nobody will end it any more. It ends like this.
    Stuck {
        why: &'static str,
        outcome: Result<Value, ToolError>,
    },
}

/// Judges an open operation. `has_executor`: a live worker is known that runs operations.
pub fn judge_work(operation: &Operation, child: Child<'_>, has_executor: bool, now_ms: i64) -> WorkFinding {
    if !operation.state.is_open() {
        return WorkFinding::Fine;
    }
    if let Some((why, error)) = lost(operation, child) {
        return WorkFinding::Stuck { why, outcome: Err(error) };
    }
    let timed = timed(operation);
    if deadline(&timed).is_some_and(|until_ms| now_ms.saturating_sub(until_ms) > OVERDUE_MS) {
        return WorkFinding::Stuck { why: "its time was over and nobody ended it", outcome: out_of_time(&timed) };
    }
    let is_ours = operation.kind == OperationKind::Task && operation.pool == POOL;
    match now_ms.saturating_sub(operation.due_at_ms) {
        _ if !is_ours => WorkFinding::Fine,
        late_ms if late_ms > UNTAKEN_MS && !has_executor => WorkFinding::WithoutExecutor,
        late_ms if late_ms > OVERDUE_MS => WorkFinding::Late,
        _ => WorkFinding::Fine,
    }
}

/// A called agent that cannot answer any more. It answers in the step that ends its turn, so an open call of a
/// session without a turn has lost its answer, or its input.
fn lost(operation: &Operation, child: Child<'_>) -> Option<(&'static str, ToolError)> {
    let tool = &operation.tool;
    let (why, message, retriable) = match child {
        Child::Missing(id) => {
            ("the session that was to work on it does not exist", format!("session {id} does not exist"), true)
        }
        Child::There { id, head, .. } if head.status.is_final() => {
            let how = head.status.as_str();
            ("the session that worked on it has ended without an answer", format!("session {id} is {how}"), false)
        }
        Child::There { id, head, has_pending: false } if is_at_ease(head) => {
            ("the session that was to work on it has no turn", format!("session {id} waits for input"), false)
        }
        Child::None | Child::There { .. } => return None,
    };
    let message = format!("{tool} was not answered and will not be: {message}. What was done so far stays");
    Some((why, ToolError { code: ToolErrorCode::ExecutionFailed, message, retriable }))
}

/// It waits for input, and for nothing else.
fn is_at_ease(head: &Head) -> bool {
    head.status == SessionStatus::Running && head.cause == Cause::Input && head.wake_at_ms.is_none()
}

/// The session whose standing [`judge_work`] has to know.
pub fn child_of(operation: &Operation) -> Option<SessionId> {
    works_on(operation).filter(|_| operation.state == OperationState::Pending)
}

/// The operation with the time that it should have: what has none would wait for ever.
fn timed(operation: &Operation) -> Operation {
    let mut timed = operation.clone();
    match timed.kind {
        OperationKind::Approval => {
            let ms = timed.approval.as_ref().map_or(APPROVAL_S_MAX * 1_000, |asked| asked.expires_ms);
            timed.until_ms.get_or_insert(later(timed.created_at_ms, ms));
        }
        OperationKind::Agent => {
            if timed.timeout_ms == 0 {
                timed.timeout_ms = AGENT_MS_DEFAULT;
            }
            timed.until_ms.get_or_insert(later(timed.created_at_ms, timed.timeout_ms));
        }
        OperationKind::Task if timed.pool == POOL => {}
        OperationKind::Task => {
            timed.wait_ms.get_or_insert(TASK_UNTAKEN_S_DEFAULT * 1_000);
        }
    }
    timed
}
