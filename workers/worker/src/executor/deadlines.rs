//! What nobody answered or took in time: approvals get their default; tasks for workers of others, and work
//! of agents, end with `TIMEOUT`. Every executor looks; ending an operation twice is ending it once.

use std::sync::Arc;
use std::time::Duration;

use domain::failure::Failure;
use domain::ports::{Ended, OperationRow};
use domain::tool::{APPROVER, out_of_time, settled};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::{Shared, record};

/// Operations of one page, and pages of one look: what cannot be ended comes again with the next one.
const LOOK_MAX: usize = 100;
const PAGES_MAX: usize = 100;
/// Who ends what nobody ended: the same for every executor.
const TIMEKEEPER: &str = "task-deadline";
const AGENTS_TIMEKEEPER: &str = "agent-deadline";

pub async fn serve(shared: Arc<Shared>, stop: CancellationToken) {
    let mut tick = tokio::time::interval(Duration::from_millis(shared.config.deadline_look_ms));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while stop.run_until_cancelled(tick.tick()).await.is_some() {
        let Some(looked) = stop.run_until_cancelled(look(&shared)).await else { break };
        match looked {
            Ok(()) => host::stall::clear(),
            Err(failure) => host::stall::note("the look for what nobody took in time", &failure),
        }
    }
}

async fn look(shared: &Shared) -> Result<(), Failure> {
    let operations = &shared.deps.operations;
    for _ in 0..PAGES_MAX {
        let expired = operations.expired_approvals(LOOK_MAX).await?;
        for row in &expired {
            end(shared, row, APPROVER).await;
        }
        let waiting = operations.untaken(LOOK_MAX).await?;
        for row in &waiting {
            end(shared, row, TIMEKEEPER).await;
        }
        let late = operations.overdue(LOOK_MAX).await?;
        for row in &late {
            end(shared, row, AGENTS_TIMEKEEPER).await;
        }
        if expired.len().max(waiting.len()).max(late.len()) < LOOK_MAX {
            return Ok(());
        }
    }
    Ok(())
}

/// The turn learns of a default as it would of a person's answer, and goes on with an error; if an agent works
/// on it, the turn tells that one to stop.
async fn end(shared: &Shared, row: &OperationRow, actor: &str) {
    let (state, action) = settled(&row.namespace, &row.operation, out_of_time(&row.operation), actor);
    record::write(shared, row, Ended::Settled { state, action: Box::new(action) }).await;
}
