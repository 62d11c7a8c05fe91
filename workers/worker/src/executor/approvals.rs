//! Approvals that nobody answered in time get their default. Every executor looks; ending an approval
//! twice is ending it once.

use std::sync::Arc;
use std::time::Duration;

use domain::failure::Failure;
use domain::ports::{Ended, OperationRow};
use domain::tool::settled;
use serde_json::json;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::{Shared, record};

/// Approvals of one look.
const LOOK_MAX: usize = 100;
/// Who answers when nobody did: the same for every executor.
const ACTOR: &str = "approval-default";

pub async fn serve(shared: Arc<Shared>, stop: CancellationToken) {
    let mut tick = tokio::time::interval(Duration::from_millis(shared.config.approval_look_ms));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut failing = false;
    while stop.run_until_cancelled(tick.tick()).await.is_some() {
        let Some(looked) = stop.run_until_cancelled(look(&shared)).await else { break };
        match looked {
            Ok(()) => failing = false,
            Err(failure) => {
                if !std::mem::replace(&mut failing, true) {
                    tracing::warn!(%failure, "expired approvals cannot be looked for; will go on trying");
                }
            }
        }
    }
}

async fn look(shared: &Shared) -> Result<(), Failure> {
    loop {
        let expired = shared.deps.operations.expired_approvals(LOOK_MAX).await?;
        let full = expired.len() == LOOK_MAX;
        for row in expired {
            answer(shared, &row).await?;
        }
        if !full {
            return Ok(());
        }
    }
}

/// The turn learns of it as it would of a person's answer.
async fn answer(shared: &Shared, row: &OperationRow) -> Result<(), Failure> {
    let approved = row.operation.approval.as_ref().is_some_and(|asked| asked.default_approve);
    let answer = json!({"approved": approved, "by": ACTOR, "reason": "nobody answered in time"});
    let (state, action) = settled(&row.namespace, &row.operation, Ok(answer), ACTOR);
    record::write(shared, row, Ended::Settled { state, action: Box::new(action) }).await;
    Ok(())
}
