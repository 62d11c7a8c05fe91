//! What nobody answered or took in time: approvals get their default, and tasks for workers of others
//! end with `TIMEOUT`. Every executor looks; ending an operation twice is ending it once.

use std::sync::Arc;
use std::time::Duration;

use domain::failure::Failure;
use domain::ports::{Ended, OperationRow};
use domain::tool::{settled, untaken};
use serde_json::json;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::{Shared, record};

/// Operations of one look.
const LOOK_MAX: usize = 100;
/// Who answers when nobody did: the same for every executor.
const APPROVER: &str = "approval-default";
const TIMEKEEPER: &str = "task-deadline";

pub async fn serve(shared: Arc<Shared>, stop: CancellationToken) {
    let mut tick = tokio::time::interval(Duration::from_millis(shared.config.deadline_look_ms));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut failing = false;
    while stop.run_until_cancelled(tick.tick()).await.is_some() {
        let Some(looked) = stop.run_until_cancelled(look(&shared)).await else { break };
        match looked {
            Ok(()) => failing = false,
            Err(failure) => {
                if !std::mem::replace(&mut failing, true) {
                    tracing::warn!(%failure, "what nobody took in time cannot be looked for; will go on trying");
                }
            }
        }
    }
}

async fn look(shared: &Shared) -> Result<(), Failure> {
    let operations = &shared.deps.operations;
    loop {
        let expired = operations.expired_approvals(LOOK_MAX).await?;
        for row in &expired {
            answer(shared, row).await;
        }
        let untaken = operations.untaken(LOOK_MAX).await?;
        for row in &untaken {
            end(shared, row).await;
        }
        if expired.len().max(untaken.len()) < LOOK_MAX {
            return Ok(());
        }
    }
}

/// The turn learns of it as it would of a person's answer.
async fn answer(shared: &Shared, row: &OperationRow) {
    let approved = row.operation.approval.as_ref().is_some_and(|asked| asked.default_approve);
    let answer = json!({"approved": approved, "by": APPROVER, "reason": "nobody answered in time"});
    let (state, action) = settled(&row.namespace, &row.operation, Ok(answer), APPROVER);
    record::write(shared, row, Ended::Settled { state, action: Box::new(action) }).await;
}

async fn end(shared: &Shared, row: &OperationRow) {
    let (state, action) = settled(&row.namespace, &row.operation, Err(untaken(&row.operation)), TIMEKEEPER);
    record::write(shared, row, Ended::Settled { state, action: Box::new(action) }).await;
}
