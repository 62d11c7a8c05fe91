//! Writes down how an attempt ended, for as long as it takes, and sends the result on its way.

use std::time::{Duration, SystemTime};

use domain::chat::ProviderCallRecord;
use domain::ports::{Accepted, Claim, Ended, Ending, OperationRow, Verdict};
use domain::retry::STORE;
use domain::tool::attempt::Next;
use domain::tool::settled_with;
use host::trace;
use schemas::action::Action;

use super::Shared;
use crate::outgoing;

/// `calls`: what the attempt asked of models. It goes with the result; of an attempt without one, it goes ahead.
pub async fn record(shared: &Shared, row: &OperationRow, next: Next, calls: &[ProviderCallRecord]) {
    let ended = match next {
        Next::End(outcome) => {
            let (state, action) = settled_with(&row.namespace, &row.operation, outcome, &actor(shared), calls);
            let ended = Ended::Settled { state, action: Box::new(action) };
            if write(shared, row, ended).await == Some(Taken::No) {
                spent(shared, row, calls).await;
            }
            return;
        }
        Next::Again { after_ms, error, lost } => Ended::Again { after_ms, error, lost },
        // Probes are made before anything is written down.
        Next::Probe(failure) => Ended::Again { after_ms: 0, error: failure.error.message, lost: false },
    };
    spent(shared, row, calls).await;
    write(shared, row, ended).await;
}

fn actor(shared: &Shared) -> String {
    format!("executor:{}", shared.config.worker)
}

/// What became of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    Yes,
    /// Nobody waits for it any more.
    No,
}

/// The same end may be written twice: its action has one id. So a lost answer is asked for again. `None`: it is
/// not known whether it is written.
pub async fn write(shared: &Shared, row: &OperationRow, ended: Ended) -> Option<Taken> {
    let id = &row.operation.operation_id;
    let claim = Claim::by(shared.config.worker.as_str());
    let begun = trace::begin();
    for attempt in 1.. {
        match shared.deps.operations.end(&row.namespace, id, Some(claim), ended.clone()).await {
            Ok(ending) => return Some(told(shared, row, ending, begun).await),
            Err(failure) if failure.retriable => {
                host::stall::note("ends of operations", &failure);
            }
            Err(failure) => {
                tracing::error!(operation = %id, %failure, "the end of an operation cannot be written");
                return None;
            }
        }
        if !may_try_again(shared, attempt).await {
            // The process ends. Whoever claims it next settles it.
            return None;
        }
    }
    None
}

/// Waits for a store that is away; `false`: the process ends.
async fn may_try_again(shared: &Shared, attempt: u32) -> bool {
    let wait = STORE.delay_ms(attempt).unwrap_or(1_000);
    let pause = tokio::time::sleep(Duration::from_millis(wait));
    shared.hurry.run_until_cancelled(pause).await.is_some()
}

async fn told(shared: &Shared, row: &OperationRow, ending: Ending, begun: Option<SystemTime>) -> Taken {
    let id = &row.operation.operation_id;
    match ending {
        Ending::Settled(Verdict::Accepted(Accepted { action })) => send_on(shared, action, begun).await,
        Ending::Settled(Verdict::Repeated(_)) => tracing::debug!(operation = %id, "had ended like this already"),
        Ending::Settled(Verdict::Refused(refusal)) => {
            tracing::info!(operation = %id, code = refusal.code.as_str(), "nobody waits for its result any more");
            return Taken::No;
        }
        Ending::Scheduled => tracing::debug!(operation = %id, "is tried again"),
        Ending::NotOpen => {
            tracing::debug!(operation = %id, "had ended in the meantime");
            return Taken::No;
        }
    }
    Taken::Yes
}

/// Tells the session what an attempt has asked of models that ended nothing: it costs all the same. Telling it
/// twice is telling it once.
pub async fn spent(shared: &Shared, row: &OperationRow, calls: &[ProviderCallRecord]) {
    if calls.is_empty() {
        return;
    }
    let id = &row.operation.operation_id;
    let told = domain::tool::spent(&row.namespace, &row.operation, calls, &actor(shared));
    let begun = trace::begin();
    for attempt in 1.. {
        match shared.deps.ledger.accept(vec![told.clone()]).await {
            Ok(verdicts) => {
                for verdict in verdicts {
                    match verdict {
                        Verdict::Accepted(Accepted { action }) => send_on(shared, action, begun).await,
                        Verdict::Repeated(_) => {}
                        Verdict::Refused(refusal) => {
                            tracing::info!(operation = %id, code = refusal.code.as_str(), "nobody pays for it any more");
                        }
                    }
                }
                return;
            }
            Err(failure) if failure.retriable => {
                host::stall::note("what attempts cost", &failure);
            }
            Err(failure) => {
                tracing::error!(operation = %id, %failure, "what an attempt cost cannot be written");
                return;
            }
        }
        if !may_try_again(shared, attempt).await {
            return;
        }
    }
}

/// `begun`: when its acceptance was asked for.
async fn send_on(shared: &Shared, action: Action, begun: Option<SystemTime>) {
    outgoing::note_accepted(begun, &shared.config.worker, [&action]);
    outgoing::publish_and_note(shared.deps.queue.as_ref(), shared.deps.ledger.as_ref(), vec![action]).await;
}
