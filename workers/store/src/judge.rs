//! What becomes of each action of a batch: the rules of `Ledger::accept`, decided in memory over
//! what the transaction has read, in the order given. Writes nothing.

mod talk;

use std::collections::HashMap;

use domain::ports::{Accepted, Refusal, Verdict};
use domain::session::opens;
use domain::shard::shard_of;
use domain::talk::not_caused;
use schemas::action::{Action, ActionOutcome, ActionType, Lane, NewAction};
use schemas::id::{ActionId, AgentId, ConversationId, Namespace, SessionKey, Shard};
use schemas::problem::Code;
use schemas::session::{NewSession, SessionStatus};

pub(crate) use talk::{Aside, Guest, Seat, Work};

/// A session as far as acceptance is concerned.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) agent_id: AgentId,
    pub(crate) conversation_id: Option<ConversationId>,
    pub(crate) shard: Shard,
    pub(crate) status: SessionStatus,
    pub(crate) created_at_ms: i64,
    pub(crate) control_seq: u64,
    pub(crate) work_seq: u64,
    /// Registered by this batch: not in the table yet.
    pub(crate) is_new: bool,
    /// Its counters differ from the table's.
    pub(crate) is_touched: bool,
}

/// An action that has a row, and what its repeats are told.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) body_hash: [u8; 32],
    pub(crate) verdict: Verdict,
}

/// A row to insert for `batch[index]`.
#[derive(Debug)]
pub(crate) struct Entered {
    pub(crate) index: usize,
    /// The session it was found to be for.
    pub(crate) target: Option<SessionKey>,
    pub(crate) session_seq: Option<u64>,
    /// For rows that end at once.
    pub(crate) ended: Option<(ActionOutcome, Option<Code>, Option<String>)>,
}

/// All that is known while a batch is judged: what was read, and what the batch adds.
#[derive(Debug, Default)]
pub(crate) struct Book {
    pub(crate) actions: HashMap<(Namespace, ActionId), Seen>,
    pub(crate) sessions: HashMap<SessionKey, Known>,
    pub(crate) newest: HashMap<(Namespace, AgentId), SessionKey>,
    /// Sessions to register, in order; `batch[index].session` is what they are.
    pub(crate) created: Vec<(SessionKey, usize)>,
    pub(crate) entered: Vec<Entered>,
    /// Conversations and operations that the batch has to do with.
    pub(crate) aside: Aside,
}

impl Book {
    /// The verdict on `batch[index]`, which is entered into the book.
    pub(crate) fn judge(&mut self, index: usize, new: &NewAction, now_ms: i64, shards: u16) -> Verdict {
        let id = (new.namespace.clone(), new.action_id.clone());
        if let Some(seen) = self.actions.get(&id) {
            return repeat(seen, new);
        }
        let judged = match (new.kind, &new.session) {
            (ActionType::Create, Some(session)) => self.create(index, new, session, now_ms, shards),
            (ActionType::Create, None) => Err((None, Code::Internal, "a create action without a session".to_owned())),
            _ => self.target(index, new).map(|key| (key, false)),
        };
        self.end_operation(index, new, judged.is_ok());
        let verdict = match judged {
            Ok((key, ends_here)) => self.enter(index, new, key, ends_here, now_ms),
            Err((target, code, detail)) => {
                let ended = Some((ActionOutcome::Rejected, Some(code), Some(detail.clone())));
                self.entered.push(Entered { index, target, session_seq: None, ended });
                Verdict::Refused(Refusal { code, detail, recorded: true })
            }
        };
        let repeated = match &verdict {
            Verdict::Accepted(accepted) => {
                Verdict::Repeated(Accepted { action: Action { opens: None, ..accepted.action.clone() } })
            }
            other => other.clone(),
        };
        self.actions.insert(id, Seen { body_hash: new.body_hash, verdict: repeated });
        verdict
    }

    /// What a repeated message is told of one of its actions: what it led to then, and nothing new.
    pub(crate) fn told(&self, new: &NewAction) -> Verdict {
        let Some(seen) = self.actions.get(&(new.namespace.clone(), new.action_id.clone())) else {
            let (code, detail) = not_caused(new);
            return Verdict::Refused(Refusal { code, detail, recorded: false });
        };
        repeat(seen, new)
    }

    /// Registers the session. The flag: the session exists, so the action ends here (SPEC Q-SES-10), or its agent
    /// takes part already where it is brought in (SPEC W-INV-04): the session is that of its seat.
    fn create(
        &mut self,
        index: usize,
        new: &NewAction,
        session: &NewSession,
        now_ms: i64,
        shards: u16,
    ) -> Result<(SessionKey, bool), Refused> {
        let key = SessionKey::new(new.namespace.clone(), session.session_id.clone());
        if let Some(known) = self.sessions.get(&key) {
            if known.agent_id == session.agent_id && !known.status.is_final() {
                return Ok((key, true));
            }
            let detail = format!(
                "session {} exists already: agent {}, {}",
                key.session_id,
                known.agent_id,
                known.status.as_str()
            );
            return Err((Some(key), Code::SessionExists, detail));
        }
        if let Some(seat) = self.seat(new) {
            return Ok((seat, true));
        }
        self.check_forum(new)?;
        self.join(new, session, now_ms);
        let agent = (new.namespace.clone(), session.agent_id.clone());
        // The newest session of an agent is the one that was created last, even if the clock stood
        // still or went back.
        let after = self.newest.get(&agent).and_then(|key| self.sessions.get(key)).map(|known| known.created_at_ms + 1);
        let conversation_id = session.spec.conversation_id.clone();
        let known = Known {
            agent_id: session.agent_id.clone(),
            shard: shard_of(&key.session_id, conversation_id.as_ref(), shards),
            conversation_id,
            status: SessionStatus::Starting,
            created_at_ms: after.map_or(now_ms, |after| after.max(now_ms)),
            control_seq: 0,
            work_seq: 0,
            is_new: true,
            is_touched: false,
        };
        self.newest.insert(agent, key.clone());
        self.sessions.insert(key.clone(), known);
        self.created.push((key.clone(), index));
        Ok((key, false))
    }

    /// The session that an action other than `create` is for, if that session can take it.
    fn target(&self, index: usize, new: &NewAction) -> Result<SessionKey, Refused> {
        let key = match (&new.session_id, self.waiting(index, new), &new.agent_id) {
            (Some(session), ..) => SessionKey::new(new.namespace.clone(), session.clone()),
            (None, Some(key), _) => key,
            (None, None, Some(agent)) => {
                let newest = self.newest.get(&(new.namespace.clone(), agent.clone()));
                newest.cloned().ok_or_else(|| {
                    (None, Code::AgentNotFound, format!("agent {agent} has no session; create one first"))
                })?
            }
            (None, None, None) => {
                let nothing = || (None, Code::InvalidRequest, "session_id or agent_id must be given".to_owned());
                return Err(self.nobody_waits(index).unwrap_or_else(nothing));
            }
        };
        // Whoever came first has made another one.
        let key = if self.sessions.contains_key(&key) { key } else { self.seat(new).unwrap_or(key) };
        let Some(known) = self.sessions.get(&key) else {
            let detail = format!("there is no session {}; create it first", key.session_id);
            return Err((None, Code::SessionNotFound, detail));
        };
        if let Some(agent) = &new.agent_id
            && *agent != known.agent_id
        {
            let detail = format!("session {} belongs to agent {}, not to {agent}", key.session_id, known.agent_id);
            return Err((Some(key), Code::WrongAgent, detail));
        }
        if known.status.is_final() {
            let detail = format!("session {} has ended ({})", key.session_id, known.status.as_str());
            return Err((Some(key), Code::SessionEnded, detail));
        }
        // A result is kept for a resume, as other work is that was there before: whoever brings it does so once.
        let is_way_out = matches!(new.kind, ActionType::Resume | ActionType::Destroy);
        if known.status == SessionStatus::Error && !is_way_out && !self.is_awaited(index, new, &key) {
            let detail = format!("session {} has failed", key.session_id);
            return Err((Some(key), Code::SessionEnded, detail));
        }
        self.check_operation(index, new, &key)?;
        Ok(key)
    }

    /// Numbers an accepted action.
    fn enter(&mut self, index: usize, new: &NewAction, key: SessionKey, ends_here: bool, now_ms: i64) -> Verdict {
        let Some(known) = self.sessions.get_mut(&key) else {
            return Verdict::Refused(Refusal {
                code: Code::Internal,
                detail: format!("session {key} was not read"),
                recorded: false,
            });
        };
        let session_seq = if ends_here {
            0
        } else {
            known.is_touched = true;
            let counter = match new.kind.lane() {
                Lane::Control => &mut known.control_seq,
                Lane::Work => &mut known.work_seq,
            };
            *counter += 1;
            *counter
        };
        let action = Action {
            namespace: new.namespace.clone(),
            action_id: new.action_id.clone(),
            kind: new.kind,
            session_id: key.session_id.clone(),
            agent_id: known.agent_id.clone(),
            conversation_id: known.conversation_id.clone(),
            shard: known.shard,
            session_seq,
            urgency: new.urgency,
            actor: new.actor.clone(),
            payload: new.payload.clone(),
            metadata: new.metadata.clone(),
            accepted_at_ms: now_ms,
            opens: opens(new).filter(|_| !ends_here),
        };
        let ended = ends_here.then_some((ActionOutcome::Ok, None, None));
        self.entered.push(Entered { index, target: Some(key), session_seq: Some(session_seq), ended });
        Verdict::Accepted(Accepted { action })
    }
}

/// The session it names, if there is one, with code and detail.
type Refused = (Option<SessionKey>, Code, String);

fn repeat(seen: &Seen, new: &NewAction) -> Verdict {
    if seen.body_hash == new.body_hash {
        return seen.verdict.clone();
    }
    Verdict::Refused(Refusal {
        code: Code::ActionConflict,
        detail: format!("action_id {} was used for another action", new.action_id),
        recorded: false,
    })
}
