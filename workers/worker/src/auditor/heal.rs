//! What the auditor does about a missing cause: what somebody of the fleet would have done, in the same way.

use std::time::SystemTime;

use domain::chat::ToolError;
use domain::conversation::cancel;
use domain::failure::Failure;
use domain::ports::{Ended, Ending, OperationRow, Verdict};
use domain::tool::settled;
use host::trace;
use schemas::action::Action;
use schemas::conversation::Turn;
use schemas::id::SessionKey;
use serde_json::Value;

use crate::outgoing;
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
    let (deps, begun) = (&shared.deps, trace::begin());
    match cure {
        Cure::Wake => Ok(if deps.sessions.rearm(key, place).await? { Cured::Done } else { Cured::Over }),
        Cure::End(row, outcome) => {
            let (state, action) = settled(&row.namespace, &row.operation, outcome.clone(), ACTOR);
            let ended = Ended::Settled { state, action: Box::new(action) };
            match deps.operations.end(&row.namespace, &row.operation.operation_id, None, ended).await? {
                Ending::Settled(verdict) => Ok(taken(shared, verdict, begun).await),
                Ending::Scheduled | Ending::NotOpen => Ok(Cured::Over),
            }
        }
        Cure::Cancel(turn) => {
            let Ok(action) = cancel::action(&key.namespace, turn, ACTOR) else { return Ok(Cured::Over) };
            match deps.ledger.accept(vec![action]).await?.into_iter().next() {
                Some(verdict) => Ok(taken(shared, verdict, begun).await),
                None => Ok(Cured::Not),
            }
        }
        Cure::Unknown => Ok(Cured::Not),
    }
}

/// An action of this id that was there already has not helped.
async fn taken(shared: &Shared, verdict: Verdict, begun: Option<SystemTime>) -> Cured {
    match verdict {
        Verdict::Accepted(accepted) => {
            outgoing::note_accepted(begun, &shared.config.worker, [&accepted.action]);
            publish(shared, accepted.action).await;
            Cured::Done
        }
        Verdict::Repeated(_) | Verdict::Refused(_) => Cured::Not,
    }
}

async fn publish(shared: &Shared, action: Action) {
    outgoing::publish_and_note(shared.deps.queue.as_ref(), shared.deps.ledger.as_ref(), vec![action]).await;
}
