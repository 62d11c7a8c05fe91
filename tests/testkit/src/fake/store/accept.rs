//! Acceptance of actions: the rules of `Ledger::accept`, one action at a time.

use domain::action::result_of;
use domain::ports::{Accepted, Refusal, Verdict};
use domain::session::opens;
use domain::shard::shard_of;
use domain::talk::not_caused;
use schemas::action::{Action, ActionOutcome, ActionType, Lane, NewAction};
use schemas::conversation::{Operation, OperationState};
use schemas::id::{AgentId, OperationId, SessionId, SessionKey};
use schemas::problem::Code;
use schemas::session::{Head, NewSession, SessionRow, SessionStatus};

use super::state::{ActionRec, State};
use crate::fake::breakage::{Breakage, Breakages};

impl State {
    pub fn accept(&mut self, new: NewAction, now_ms: i64, breakages: &Breakages) -> Verdict {
        let ending = result_of(&new);
        self.accept_ending(new, ending, now_ms, breakages)
    }

    /// As [`State::accept`], for an action that ends this operation.
    pub fn accept_ending(
        &mut self,
        new: NewAction,
        ending: Option<(OperationId, OperationState)>,
        now_ms: i64,
        breakages: &Breakages,
    ) -> Verdict {
        if let Some(verdict) = self.repeated(&new) {
            let forgotten = breakages.on(Breakage::SkipDedupe) && matches!(verdict, Verdict::Repeated(_));
            if !forgotten {
                return verdict;
            }
        }
        let decided = match new.session.clone() {
            Some(session) => self.create(&new, session, now_ms),
            None => self.find_target(&new, ending.as_ref().map(|(id, _)| id), breakages),
        };
        self.end_operation(&new, ending, decided.is_ok());
        match decided {
            Ok(Target::Existing(key)) => self.insert_settled(new, &key, now_ms),
            Ok(Target::Live(key)) => self.insert_open(new, &key, now_ms, breakages),
            Err((code, detail)) => self.insert_refused(new, code, detail, now_ms),
        }
    }

    /// What a repeated message is told of one of its actions.
    pub fn told(&self, new: &NewAction) -> Verdict {
        self.repeated(new).unwrap_or_else(|| {
            let (code, detail) = not_caused(new);
            Verdict::Refused(Refusal { code, detail, recorded: false })
        })
    }

    fn repeated(&self, new: &NewAction) -> Option<Verdict> {
        let rec = self.actions.get(&(new.namespace.clone(), new.action_id.clone()))?;
        if rec.asked.body_hash != new.body_hash {
            return Some(Verdict::Refused(Refusal {
                code: Code::ActionConflict,
                detail: format!("action {} was accepted with another body", new.action_id),
                recorded: false,
            }));
        }
        Some(match &rec.action {
            Some(action) => Verdict::Repeated(Accepted { action: action.clone() }),
            None => Verdict::Refused(Refusal {
                code: rec.code.unwrap_or(Code::Internal),
                detail: rec.error.clone().unwrap_or_default(),
                recorded: true,
            }),
        })
    }

    fn create(&mut self, new: &NewAction, session: NewSession, now_ms: i64) -> Result<Target, (Code, String)> {
        let key = SessionKey::new(new.namespace.clone(), session.session_id.clone());
        if let Some(row) = self.sessions.get(&key) {
            if row.agent_id == session.agent_id && !row.head.status.is_final() {
                return Ok(Target::Existing(key));
            }
            return Err((Code::SessionExists, format!("session {} exists already", key.session_id)));
        }
        if let Some(seat) = self.seat(new) {
            return Ok(Target::Existing(seat));
        }
        self.join_session(new, &session, now_ms)?;
        let conversation = session.spec.conversation_id.as_ref();
        let shard = shard_of(&session.session_id, conversation, self.shards.len() as u16);
        self.latest.insert((new.namespace.clone(), session.agent_id.clone()), session.session_id.clone());
        let row = SessionRow {
            key: key.clone(),
            agent_id: session.agent_id,
            shard,
            spec: session.spec,
            head: Head::starting(now_ms),
            created_at_ms: now_ms,
            control_seq: 0,
            work_seq: 0,
        };
        self.sessions.insert(key.clone(), row);
        Ok(Target::Live(key))
    }

    fn find_target(
        &self,
        new: &NewAction,
        operation: Option<&OperationId>,
        breakages: &Breakages,
    ) -> Result<Target, (Code, String)> {
        let key = self.target_key(new, operation, breakages)?;
        let row = &self.sessions[&key];
        if new.agent_id.as_ref().is_some_and(|agent| *agent != row.agent_id) {
            return Err((Code::WrongAgent, format!("session {} belongs to another agent", key.session_id)));
        }
        let waits = |work: &Operation| work.session_id == key.session_id && work.state.is_open();
        let named = self.named_operation(new, operation);
        let allowed = match row.head.status {
            // A result is kept for a resume.
            SessionStatus::Error => {
                matches!(new.kind, ActionType::Resume | ActionType::Destroy) || named.is_some_and(waits)
            }
            status => !status.is_final(),
        };
        if !allowed {
            return Err((Code::SessionEnded, format!("session {} has ended", key.session_id)));
        }
        if named.is_some_and(|work| !waits(work)) {
            return Err((Code::NoOpenOperation, "the operation does not wait for this result".to_owned()));
        }
        Ok(Target::Live(key))
    }

    fn target_key(
        &self,
        new: &NewAction,
        operation: Option<&OperationId>,
        breakages: &Breakages,
    ) -> Result<SessionKey, (Code, String)> {
        match (&new.session_id, self.named_operation(new, operation), &new.agent_id) {
            (Some(session), ..) => {
                let key = SessionKey::new(new.namespace.clone(), session.clone());
                if breakages.strikes(Breakage::CrossNamespace)
                    && let Some(foreign) = self.foreign_namesake(&key)
                {
                    return Ok(foreign);
                }
                if self.sessions.contains_key(&key) {
                    return Ok(key);
                }
                self.seat(new).ok_or_else(|| (Code::SessionNotFound, format!("there is no session {session}")))
            }
            (None, Some(work), _) => {
                let key = SessionKey::new(new.namespace.clone(), work.session_id.clone());
                let detail = || (Code::SessionNotFound, format!("there is no session {}", key.session_id));
                self.sessions.contains_key(&key).then(|| key.clone()).ok_or_else(detail)
            }
            (None, None, Some(agent)) => self
                .latest_of(new, agent)
                .map(|session| SessionKey::new(new.namespace.clone(), session.clone()))
                .ok_or_else(|| (Code::AgentNotFound, format!("agent {agent} has no session"))),
            (None, None, None) if operation.is_some() => {
                Err((Code::NoOpenOperation, "there is no such operation".into()))
            }
            (None, None, None) => Err((Code::InvalidRequest, "session_id or agent_id is needed".into())),
        }
    }

    fn latest_of(&self, new: &NewAction, agent: &AgentId) -> Option<&SessionId> {
        self.latest.get(&(new.namespace.clone(), agent.clone()))
    }

    fn foreign_namesake(&self, key: &SessionKey) -> Option<SessionKey> {
        let same_id = |other: &&SessionKey| other.session_id == key.session_id && other.namespace != key.namespace;
        self.sessions.keys().find(same_id).cloned()
    }

    fn insert_open(&mut self, new: NewAction, key: &SessionKey, now_ms: i64, breakages: &Breakages) -> Verdict {
        let lane = new.kind.lane();
        let repeat = breakages.strikes(Breakage::RepeatSessionSeq);
        let row = self.sessions.get_mut(key).expect("the target was just found");
        let counter = match lane {
            Lane::Control => &mut row.control_seq,
            Lane::Work => &mut row.work_seq,
        };
        if !(repeat && *counter > 0) {
            *counter += 1;
        }
        let action =
            action_of(&new, row, *if lane == Lane::Control { &row.control_seq } else { &row.work_seq }, now_ms);
        self.open.insert((action.shard, action.key(), lane, action.session_seq), action.action_id.clone());
        let opens = opens(&new);
        self.insert(ActionRec { action: Some(action.clone()), ..blank(new, now_ms) });
        Verdict::Accepted(Accepted { action: Action { opens, ..action } })
    }

    /// A create of a session that lives already: a success without an effect.
    fn insert_settled(&mut self, new: NewAction, key: &SessionKey, now_ms: i64) -> Verdict {
        let action = action_of(&new, &self.sessions[key], 0, now_ms);
        self.insert(ActionRec {
            action: Some(action.clone()),
            processed_at_ms: Some(now_ms),
            outcome: Some(ActionOutcome::Ok),
            ..blank(new, now_ms)
        });
        Verdict::Accepted(Accepted { action })
    }

    fn insert_refused(&mut self, mut new: NewAction, code: Code, detail: String, now_ms: i64) -> Verdict {
        // Only a session that there is can be recorded.
        let exists = |id: &SessionId| self.sessions.contains_key(&SessionKey::new(new.namespace.clone(), id.clone()));
        new.session_id = new.session_id.clone().filter(exists);
        self.insert(ActionRec {
            processed_at_ms: Some(now_ms),
            outcome: Some(ActionOutcome::Rejected),
            code: Some(code),
            error: Some(detail.clone()),
            ..blank(new, now_ms)
        });
        Verdict::Refused(Refusal { code, detail, recorded: true })
    }

    fn insert(&mut self, rec: ActionRec) {
        self.actions.insert((rec.namespace.clone(), rec.action_id.clone()), rec);
    }
}

enum Target {
    /// To be queued for this session.
    Live(SessionKey),
    /// Nothing to do: the session to be created is there, or its agent has another one there.
    Existing(SessionKey),
}

fn blank(new: NewAction, now_ms: i64) -> ActionRec {
    ActionRec {
        namespace: new.namespace.clone(),
        action_id: new.action_id.clone(),
        kind: new.kind,
        asked: new,
        action: None,
        accepted_at_ms: now_ms,
        published_at_ms: None,
        processed_at_ms: None,
        outcome: None,
        code: None,
        error: None,
    }
}

fn action_of(new: &NewAction, row: &SessionRow, session_seq: u64, now_ms: i64) -> Action {
    Action {
        namespace: row.key.namespace.clone(),
        action_id: new.action_id.clone(),
        kind: new.kind,
        session_id: row.key.session_id.clone(),
        agent_id: row.agent_id.clone(),
        conversation_id: row.spec.conversation_id.clone(),
        shard: row.shard,
        session_seq,
        urgency: new.urgency,
        actor: new.actor.clone(),
        payload: new.payload.clone(),
        metadata: new.metadata.clone(),
        accepted_at_ms: now_ms,
        opens: None,
    }
}
