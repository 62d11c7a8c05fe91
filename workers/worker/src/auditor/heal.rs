//! What the auditor does about a missing cause: what somebody of the fleet would have done, in the same way.

use domain::chat::ToolError;
use domain::conversation::cancel;
use domain::failure::Failure;
use domain::ports::{Ended, Ending, OperationRow, Verdict};
use domain::tool::settled;
use schemas::action::Action;
use schemas::conversation::Turn;
use schemas::id::SessionKey;
use serde_json::Value;

use crate::runner::Shared;

/// Whose actions they are, in the ledger.
const ACTOR: &str = "auditor";

pub(super) enum Cure<'c> {
    /// Made due, the session goes on by itself.
    Wake,
    /// The turn that waits for the operation goes on with this.
    End(&'c OperationRow, Result<Value, ToolError>),
    /// Nothing that the turn waits for is left: it ends, and says so.
    Cancel(&'c Turn),
    Unknown,
}

impl Cure<'_> {
    /// What was done, for the log.
    pub fn done(&self) -> &'static str {
        match self {
            Self::Wake => "made the session due",
            Self::End(..) => "ended the operation, so that its turn goes on",
            Self::Cancel(_) => "cancelled the turn",
            Self::Unknown => "nothing",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cured {
    Done,
    /// It has gone on, or ended, in the meantime.
    Over,
    Not,
}

/// `place`: the next offset of the session, as it was judged.
pub(super) async fn heal(shared: &Shared, key: &SessionKey, place: u64, cure: &Cure<'_>) -> Result<Cured, Failure> {
    let deps = &shared.deps;
    match cure {
        Cure::Wake => Ok(if deps.sessions.rearm(key, place).await? { Cured::Done } else { Cured::Over }),
        Cure::End(row, outcome) => {
            let (state, action) = settled(&row.namespace, &row.operation, outcome.clone(), ACTOR);
            let ended = Ended::Settled { state, action: Box::new(action) };
            match deps.operations.end(&row.namespace, &row.operation.operation_id, None, ended).await? {
                Ending::Settled(verdict) => Ok(taken(shared, verdict).await),
                Ending::Scheduled | Ending::NotOpen => Ok(Cured::Over),
            }
        }
        Cure::Cancel(turn) => {
            let Ok(action) = cancel::action(&key.namespace, turn, ACTOR) else { return Ok(Cured::Over) };
            match deps.ledger.accept(vec![action]).await?.into_iter().next() {
                Some(verdict) => Ok(taken(shared, verdict).await),
                None => Ok(Cured::Not),
            }
        }
        Cure::Unknown => Ok(Cured::Not),
    }
}

/// An action of this id that was there already has not helped.
async fn taken(shared: &Shared, verdict: Verdict) -> Cured {
    match verdict {
        Verdict::Accepted(accepted) => {
            publish(shared, accepted.action).await;
            Cured::Done
        }
        Verdict::Repeated(_) | Verdict::Refused(_) => Cured::Not,
    }
}

/// A hint to the owner of the session: what gets lost is found in the ledger.
async fn publish(shared: &Shared, action: Action) {
    let deps = &shared.deps;
    if let Err(failure) = deps.queue.publish(std::slice::from_ref(&action)).await {
        tracing::debug!(%failure, action = %action.action_id, "an action was not queued; its owner finds it");
        return;
    }
    if deps.queue.is_durable()
        && let Err(failure) = deps.ledger.mark_published(&[(action.namespace, action.action_id)]).await
    {
        tracing::debug!(%failure, "an action is published once more than needed");
    }
}
