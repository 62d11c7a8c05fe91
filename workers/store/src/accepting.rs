//! What acceptance is made of, whatever the database: a call, what it must look up, and the rows
//! that a judged batch adds.

use domain::failure::Failure;
use domain::ports::{Accepted, Refusal, Verdict};
use domain::session::refused_call;
use schemas::action::{Action, ActionOutcome, ActionType, NewAction};
use schemas::id::{AgentId, SessionKey};
use schemas::limits::{ACCEPT_BATCH_MAX, COMMIT_BATCH_BYTES_MAX};
use schemas::problem::Code;

use crate::action_row::ActionRow;
use crate::batch::Batched;
use crate::judge::{Book, Entered, Known, Seen};

/// One call of `Ledger::accept`.
pub(crate) struct Call {
    pub(crate) actions: Vec<NewAction>,
    bytes: usize,
}

impl Call {
    pub(crate) fn new(actions: Vec<NewAction>) -> Self {
        let bytes = actions.iter().map(|new| new.payload.as_str().len() + new.metadata.as_str().len()).sum();
        Self { actions, bytes }
    }
}

impl Batched for Call {
    type Answer = Vec<Verdict>;
    /// Actions and bytes.
    type Load = (usize, usize);
    const KIND: Option<&'static str> = Some("accept");

    fn join(&self, load: &mut Self::Load) -> bool {
        let (actions, bytes) = (load.0 + self.actions.len(), load.1 + self.bytes);
        let fits = actions <= ACCEPT_BATCH_MAX && bytes <= COMMIT_BATCH_BYTES_MAX;
        if fits || load.0 == 0 {
            *load = (actions, bytes);
        }
        fits
    }

    fn size(&self) -> usize {
        self.actions.len()
    }
}

/// Ids to look up, each with its namespace.
#[derive(Default)]
pub(crate) struct Wanted<'b> {
    pub(crate) actions: Vec<(&'b str, &'b str)>,
    pub(crate) sessions: Vec<(&'b str, &'b str)>,
    /// Whose newest session is wanted.
    pub(crate) agents: Vec<(&'b str, &'b str)>,
}

impl<'b> Wanted<'b> {
    pub(crate) fn of(batch: &[&'b NewAction]) -> Self {
        let mut wanted = Self::default();
        for new in batch {
            let namespace = new.namespace.as_str();
            wanted.actions.push((namespace, new.action_id.as_str()));
            let create = new.session.as_ref();
            if let Some(session) = create.map(|create| &create.session_id).or(new.session_id.as_ref()) {
                wanted.sessions.push((namespace, session.as_str()));
            }
            // The newest session is the target of what names only the agent, and a create must be newer.
            let agent = match create {
                Some(create) => Some(&create.agent_id),
                None => new.agent_id.as_ref().filter(|_| new.session_id.is_none()),
            };
            if let Some(agent) = agent {
                wanted.agents.push((namespace, agent.as_str()));
            }
        }
        wanted
    }
}

/// What a repeat of a stored action is told: a row without a number was refused.
pub(crate) fn seen(row: ActionRow) -> Result<Seen, Failure> {
    let body_hash = row.body_hash;
    let verdict = if row.session_seq.is_none() && row.outcome == Some(ActionOutcome::Rejected) {
        Verdict::Refused(Refusal {
            code: row.code.ok_or_else(|| Failure::internal("a refused action has no code"))?,
            detail: row.error.unwrap_or_default(),
            recorded: true,
        })
    } else {
        Verdict::Repeated(Accepted { action: row.into_action()? })
    };
    Ok(Seen { body_hash, verdict })
}

/// A row of the ledger to be inserted.
pub(crate) struct NewRow<'b> {
    pub(crate) new: &'b NewAction,
    pub(crate) target: Option<(&'b SessionKey, &'b Known)>,
    pub(crate) agent: Option<&'b AgentId>,
    pub(crate) session_seq: Option<u64>,
    pub(crate) outcome: Option<ActionOutcome>,
    pub(crate) code: Option<Code>,
    pub(crate) error: Option<&'b str>,
}

impl<'b> NewRow<'b> {
    pub(crate) fn of(entered: &'b Entered, batch: &[&'b NewAction], book: &'b Book) -> Self {
        let new = batch[entered.index];
        let target: Option<(&SessionKey, &Known)> =
            entered.target.as_ref().and_then(|key| Some((key, book.sessions.get(key)?)));
        let agent = match (target, &new.session, &new.agent_id) {
            // What names a session of another agent is recorded as it was sent.
            (_, _, Some(agent)) => Some(agent),
            (_, Some(session), None) => Some(&session.agent_id),
            (Some((_, known)), None, None) => Some(&known.agent_id),
            (None, None, None) => None,
        };
        let (outcome, code, error) = match &entered.ended {
            Some((outcome, code, error)) => (Some(*outcome), *code, error.as_deref()),
            None => (None, None, None),
        };
        Self { new, target, agent, session_seq: entered.session_seq, outcome, code, error }
    }
}

/// What the callers are told whose calls a batch refused, each with the place of its sender.
pub(crate) fn refused_calls(
    senders: &[usize],
    actions: &[&NewAction],
    verdicts: &[Verdict],
) -> Vec<(usize, NewAction)> {
    let refused = senders.iter().zip(actions).zip(verdicts).filter_map(|((sender, new), verdict)| match verdict {
        Verdict::Refused(refusal) => Some((*sender, refused_call(new, &refusal.detail)?)),
        _ => None,
    });
    refused.collect()
}

/// The accepted action that is now under way, for the queue.
pub(crate) fn under_way(verdict: Verdict) -> Option<Action> {
    match verdict {
        Verdict::Accepted(accepted) | Verdict::Repeated(accepted) => {
            let started_twice = accepted.action.kind == ActionType::Create && accepted.action.session_seq == 0;
            (!started_twice).then_some(accepted.action)
        }
        Verdict::Refused(_) => None,
    }
}
