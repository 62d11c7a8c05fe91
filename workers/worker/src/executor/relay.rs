//! Hands operations of pools that are not ours to a broker, where workers of others wait for them. A
//! claim says that a task is on its way: when it ends without a result, the task is sent again where
//! its class allows that, and is in doubt otherwise.

use std::sync::Arc;
use std::time::Duration;

use domain::failure::{Certainty, Failure};
use domain::ports::{Ended, Hold, OperationRow, TaskQueue};
use domain::tool::attempt::{self, Next, Start};
use domain::tool::{ActionRequest, pool_of, settled, task_body};
use schemas::definition::EffectClass;
use schemas::id::Namespace;
use tokio_util::sync::CancellationToken;

use super::{Shared, record};

/// Operations of one claim.
const CLAIM_MAX: usize = 32;
/// Until a task that the broker did not take is tried again.
const AGAIN_MS: u64 = 1_000;

/// A pool whose tasks travel over a broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relayed {
    pub namespace: Namespace,
    pub pool: String,
}

impl Relayed {
    /// What its queue is called, behind `stepfleet.tasks.`: pools of the default namespace go by their
    /// own name.
    pub fn queue(&self) -> String {
        if self.namespace == Namespace::default_ns() {
            return self.pool.clone();
        }
        pool_of(&self.namespace, &self.pool)
    }
}

pub async fn serve(shared: Arc<Shared>, tasks: Arc<dyn TaskQueue>, pool: Relayed, stop: CancellationToken) {
    let (mut failing, mut is_open) = (false, false);
    while !stop.is_cancelled() {
        if !is_open {
            // A broker that gives no answer holds up no drain.
            let opened = stop.run_until_cancelled(tasks.open(&pool.queue())).await;
            let Some(opened) = opened else { return };
            is_open = opened.is_ok();
        }
        // Never cut off: what was claimed and not sent would be held until its claim ends.
        let wait_ms = match look(&shared, tasks.as_ref(), &pool).await {
            Ok(true) => continue,
            Ok(false) => {
                failing = false;
                shared.config.poll_ms
            }
            Err(failure) => {
                if !std::mem::replace(&mut failing, true) {
                    tracing::warn!(pool = pool.pool, %failure, "tasks cannot be handed over; will go on trying");
                }
                AGAIN_MS
            }
        };
        if stop.run_until_cancelled(tokio::time::sleep(Duration::from_millis(wait_ms))).await.is_none() {
            return;
        }
    }
}

/// Sends what is due. Answers whether more may be.
async fn look(shared: &Shared, tasks: &dyn TaskQueue, pool: &Relayed) -> Result<bool, Failure> {
    let (config, name) = (&shared.config, pool_of(&pool.namespace, &pool.pool));
    let operations = &shared.deps.operations;
    let claimed = operations.claim(&name, config.worker.as_str(), Hold::Attempt(config.grace_ms), CLAIM_MAX).await?;
    let more = claimed.len() == CLAIM_MAX;
    for row in claimed {
        hand_over(shared, tasks, pool, &row).await;
    }
    Ok(more)
}

async fn hand_over(shared: &Shared, tasks: &dyn TaskQueue, pool: &Relayed, row: &OperationRow) {
    let operation = &row.operation;
    let request: ActionRequest = match operation.request.to() {
        Ok(request) => request,
        Err(error) => return end(shared, row, attempt::unreadable(operation, &error)).await,
    };
    let error = match attempt::start(operation) {
        Start::Run => None,
        Start::End(error) => Some(error),
        // Nobody here can ask their target.
        Start::Probe => match attempt::probed(operation, &request, domain::ports::Probe::Unknown, None) {
            Next::End(Err(error)) => Some(error),
            _ => None,
        },
    };
    if let Some(error) = error {
        return end(shared, row, error).await;
    }
    if let Err(failure) = tasks.send(&pool.queue(), &task_body(&row.namespace, operation, request)).await {
        tracing::debug!(operation = %operation.operation_id, %failure, "the broker did not take a task");
        if let Some(ended) = not_sent(operation.effect_class, failure) {
            record::write(shared, row, ended).await;
        }
    }
}

/// Trouble with the broker is no attempt of the task, and no start either if the task is surely not there: an
/// outage, however long, uses up nothing.
fn not_sent(class: EffectClass, failure: Failure) -> Option<Ended> {
    let (after_ms, error) = (AGAIN_MS, failure.message);
    match (failure.certainty, class) {
        (Certainty::DidNotHappen, _) => Some(Ended::Back { after_ms, error }),
        (Certainty::MayHaveHappened, EffectClass::Pure | EffectClass::Idempotent) => {
            Some(Ended::Again { after_ms, error, lost: true })
        }
        // It may lie there, and must not lie there twice: the claim stands.
        (Certainty::MayHaveHappened, _) => None,
    }
}

async fn end(shared: &Shared, row: &OperationRow, error: domain::chat::ToolError) {
    let (state, action) = settled(&row.namespace, &row.operation, Err(error), "task-relay");
    record::write(shared, row, Ended::Settled { state, action: Box::new(action) }).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_surely_not_there_is_no_start() {
        for class in [EffectClass::Pure, EffectClass::Idempotent, EffectClass::Probeable, EffectClass::AtMostOnce] {
            let away = not_sent(class, Failure::unavailable("away"));
            assert!(matches!(away, Some(Ended::Back { after_ms: AGAIN_MS, .. })), "{class:?}: {away:?}");
            let is_safe = matches!(class, EffectClass::Pure | EffectClass::Idempotent);
            match not_sent(class, Failure::in_doubt("not confirmed")) {
                Some(Ended::Again { lost: true, .. }) => assert!(is_safe, "{class:?} may lie there twice"),
                None => assert!(!is_safe, "{class:?} can be sent again"),
                other => panic!("{class:?}: {other:?}"),
            }
        }
    }
}
