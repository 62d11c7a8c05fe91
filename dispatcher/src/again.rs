//! Workers of others tell failures of the infrastructure as they tell any end. What may be repeated does not end with
//! that while it has attempts left: it is given to a worker again (SPEC W-TOOL-03, K-37).

use domain::action;
use domain::ports::{Claim, Ended, Ending};
use domain::tool::POOL;
use domain::tool::attempt::{self, Next};
use schemas::action::NewAction;
use schemas::api::AcceptedBody;
use schemas::conversation::{Operation, OperationKind, OperationState};

use crate::answer::{Answer, Refused};
use crate::gateway::Gateway;

/// How the names of workers of others begin among those who hold operations.
const CLAIMANT: &str = "external:";

/// What a worker of others is called among those who hold operations.
pub fn claimant(worker: &str) -> String {
    format!("{CLAIMANT}{worker}")
}

/// The answer to a checked action that tells such a failure; `None`: it is for the ledger. What is tried again has no
/// row there, so that the result that is to come finds its id free.
pub async fn put_back(gateway: &Gateway, new: &NewAction) -> Answer<Option<AcceptedBody>> {
    let Some(failed) = action::failure_of(new) else { return Ok(None) };
    let row = gateway.operations.operation(&new.namespace, &failed.operation_id).await?;
    let Some(row) = row.filter(|row| may_be_tried(&row.operation, new)) else { return Ok(None) };
    let operation = &row.operation;
    let answer = |accepted| {
        let (action_id, session_id) = (new.action_id.clone(), operation.session_id.clone());
        Ok(Some(AcceptedBody { action_id, session_id, accepted }))
    };
    if failed.attempt.is_some_and(|attempt| attempt < operation.attempt) {
        // Told once more, and tried again since, or soon.
        return answer(false);
    }
    // Any other failure is the end, also if it does not say of which start.
    if !attempt::is_passing(&failed.error) {
        return Ok(None);
    }
    let now_ms = gateway.clock.now_ms();
    let holder = operation.claimed_by.as_deref().filter(|_| operation.state == OperationState::Running);
    let Some(holder) = holder else {
        // It waits for its next start, and this was told before; but of a start that was taken for lost, nothing was.
        // Where one has failed before, the counts do not tell which of them was lost, and another start follows.
        let was_lost = operation.attempt <= operation.lost;
        let heard = Operation { lost: operation.lost.saturating_sub(1), ..operation.clone() };
        let is_end = was_lost && !matches!(attempt::reported(&heard, failed.error, now_ms), Some(Next::Again { .. }));
        return if is_end { Ok(None) } else { answer(false) };
    };
    if failed.attempt.is_none() {
        check_start(operation, holder, &claimant(&new.actor))?;
    }
    let next = attempt::reported(operation, failed.error, now_ms);
    let Some(Next::Again { after_ms, error, lost }) = next else { return Ok(None) };
    // Of two who tell the same at once, one finds the claim that failed.
    let claim = Claim { claimant: holder, until_ms: operation.until_ms };
    let (id, ended) = (&operation.operation_id, Ended::Again { after_ms, error, lost });
    let ending = gateway.operations.end(&new.namespace, id, Some(claim), ended).await?;
    tracing::debug!(operation = %id, attempt = operation.attempt, after_ms, ?ending, "a worker's attempt failed");
    answer(matches!(ending, Ending::Scheduled))
}

/// Holds a failure that does not say its attempt against the start that `holder` has.
///
/// # Errors
/// It may be of a start that has failed before.
fn check_start(operation: &Operation, holder: &str, reporter: &str) -> Answer<()> {
    // Starts that were lost have told nothing, and the one that runs has not either.
    let none_has_failed = operation.attempt.saturating_sub(operation.lost) <= 1;
    // What was sent to a broker is held by who sent it: whoever took it there has no name here.
    if none_has_failed || holder == reporter || !holder.starts_with(CLAIMANT) {
        return Ok(());
    }
    let what = "is missing; send the attempt of the task, as it was claimed: one that has failed before is run again, and \
                it cannot be told of which of them this is";
    Err(Refused::field("payload.attempt", what))
}

/// Whether an action is about work of others that a worker has begun, and names no session but its own.
fn may_be_tried(operation: &Operation, new: &NewAction) -> bool {
    operation.kind == OperationKind::Task
        && operation.pool != POOL
        && operation.state.is_open()
        && operation.attempt > 0
        && new.session_id.as_ref().is_none_or(|session| *session == operation.session_id)
}
