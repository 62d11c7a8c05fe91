//! Writes down how an attempt ended, for as long as it takes, and sends the result on its way.

use std::time::Duration;

use domain::ports::{Accepted, Ended, Ending, OperationRow, Verdict};
use domain::retry::STORE;
use domain::tool::attempt::Next;
use domain::tool::settled;
use schemas::action::Action;

use super::Shared;

pub async fn record(shared: &Shared, row: &OperationRow, next: Next) {
    let ended = match next {
        Next::End(outcome) => {
            let actor = format!("executor:{}", shared.config.worker);
            let (state, action) = settled(&row.namespace, &row.operation, outcome, &actor);
            Ended::Settled { state, action: Box::new(action) }
        }
        Next::Again { after_ms, error, lost } => Ended::Again { after_ms, error, lost },
        // Probes are made before anything is written down.
        Next::Probe(failure) => Ended::Again { after_ms: 0, error: failure.error.message, lost: false },
    };
    write(shared, row, ended).await;
}

/// The same end may be written twice: its action has one id. So a lost answer is asked for again.
pub async fn write(shared: &Shared, row: &OperationRow, ended: Ended) {
    let id = &row.operation.operation_id;
    let worker = shared.config.worker.as_str();
    for attempt in 1.. {
        match shared.deps.operations.end(&row.namespace, id, Some(worker), ended.clone()).await {
            Ok(ending) => return told(shared, row, ending).await,
            Err(failure) if failure.retriable => {
                tracing::warn!(operation = %id, %failure, "the end of an operation cannot be written; trying again");
            }
            Err(failure) => {
                tracing::error!(operation = %id, %failure, "the end of an operation cannot be written");
                return;
            }
        }
        let wait = STORE.delay_ms(attempt).unwrap_or(1_000);
        let pause = tokio::time::sleep(Duration::from_millis(wait));
        if shared.hurry.run_until_cancelled(pause).await.is_none() {
            // The process ends. Whoever claims it next settles it.
            return;
        }
    }
}

async fn told(shared: &Shared, row: &OperationRow, ending: Ending) {
    let id = &row.operation.operation_id;
    match ending {
        Ending::Settled(Verdict::Accepted(Accepted { action })) => publish(shared, action).await,
        Ending::Settled(Verdict::Repeated(_)) => tracing::debug!(operation = %id, "had ended like this already"),
        Ending::Settled(Verdict::Refused(refusal)) => {
            tracing::info!(operation = %id, code = refusal.code.as_str(), "nobody waits for its result any more");
        }
        Ending::Scheduled => tracing::debug!(operation = %id, "is tried again"),
        Ending::NotOpen => tracing::debug!(operation = %id, "had ended in the meantime"),
    }
}

/// A hint to the owner of the session: what gets lost is found in the ledger.
async fn publish(shared: &Shared, action: Action) {
    let deps = &shared.deps;
    if let Err(failure) = deps.queue.publish(std::slice::from_ref(&action)).await {
        tracing::debug!(%failure, action = %action.action_id, "a result was not queued; its owner finds it");
        return;
    }
    if deps.queue.is_durable()
        && let Err(failure) = deps.ledger.mark_published(&[(action.namespace, action.action_id)]).await
    {
        tracing::debug!(%failure, "a result is published once more than needed");
    }
}
