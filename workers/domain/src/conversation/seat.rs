//! A seat of an agent: who takes part, and the create action of the session that speaks for it.

use schemas::action::NewAction;
use schemas::conversation::{Participant, ParticipantKind, ParticipantRole, StartedAgent};
use schemas::id::{AgentId, ConversationId, Namespace, ParticipantId, SessionId, UserId};
use serde_json::{Map, Value, json};

use super::{CONVERSE, ids, parts};
use crate::action::fields::{Object, Problems};
use crate::action::{self, ParseContext};

/// Fields that say what an agent's session is like.
pub const FIELDS: [&str; 5] = ["agent_id", "role", "moniker", "config", "task"];

const ROLES: [&str; 3] = ["owner", "responder", "observer"];

/// Where a seat is.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    pub namespace: &'a Namespace,
    pub conversation_id: &'a ConversationId,
    pub actor: &'a str,
}

/// A new agent with a session that is to be created.
#[derive(Debug, Clone)]
pub struct AgentSeat {
    pub participant: Participant,
    pub create: NewAction,
}

impl AgentSeat {
    /// Whether its settings say what its session is, so that no definition of the agent need do it.
    pub fn is_self_described(&self) -> bool {
        self.create.session.as_ref().is_some_and(|new| {
            let has_prompt = new.spec.config.to_value().get("system_prompt").is_some();
            new.spec.moniker != CONVERSE || new.spec.task.is_some() || has_prompt
        })
    }

    /// What the client is told of it. `None` cannot be: both ids are given when the seat is made.
    pub fn started(&self, accepted: bool) -> Option<StartedAgent> {
        Some(StartedAgent {
            agent_id: self.participant.agent_id.clone()?,
            session_id: self.participant.session_id.clone()?,
            participant_id: self.participant.participant_id.clone(),
            action_id: self.create.action_id.clone(),
            accepted,
        })
    }
}

pub fn role(object: &Object<'_>, default: ParticipantRole, problems: &mut Problems) -> ParticipantRole {
    parts::choice(object, "role", &ROLES, ParticipantRole::parse, problems).unwrap_or(default)
}

/// Reads the seat of an agent that gets a session. What is wrong with its settings is told under the
/// path of the seat.
pub fn agent(
    object: &Object<'_>,
    place: Place<'_>,
    agent_id: AgentId,
    participant_id: ParticipantId,
    problems: &mut Problems,
) -> Option<AgentSeat> {
    let role = role(object, ParticipantRole::Responder, problems);
    let session_id = ids::session(place.namespace, place.conversation_id, &participant_id);
    let action_id = ids::creation(place.namespace, place.conversation_id, &participant_id);
    let context = ParseContext {
        namespace: place.namespace.clone(),
        actor: place.actor.to_owned(),
        action_id: action_id.clone(),
        session_id: session_id.clone(),
        agent_id: agent_id.clone(),
        idempotency_key: None,
    };
    let create = match action::parse(&creation(object, place, &agent_id, &session_id), context) {
        Ok(create) => create,
        Err(problem) => {
            if problem.errors.is_empty() {
                problems.add_as(problem.code, object.path("config"), problem.detail);
            }
            for wrong in problem.errors {
                let field = wrong.field.strip_prefix("payload.").unwrap_or(&wrong.field);
                problems.add_as(problem.code, object.path(field), wrong.message);
            }
            return None;
        }
    };
    let participant = participant(ParticipantKind::Agent, participant_id, role);
    Some(AgentSeat {
        participant: Participant { agent_id: Some(agent_id), session_id: Some(session_id), ..participant },
        create: NewAction { action_id, ..create },
    })
}

/// The create action as anybody could have sent it.
fn creation(object: &Object<'_>, place: Place<'_>, agent: &AgentId, session: &SessionId) -> Value {
    let mut payload = Map::new();
    payload.insert("moniker".into(), object.get("moniker").cloned().unwrap_or_else(|| json!(CONVERSE)));
    payload.insert("conversation_id".into(), json!(place.conversation_id));
    for name in ["config", "task"] {
        if let Some(value) = object.get(name) {
            payload.insert(name.into(), value.clone());
        }
    }
    json!({"type": "create", "session_id": session, "agent_id": agent, "payload": payload})
}

pub fn user(
    place: Place<'_>,
    user_id: UserId,
    participant_id: Option<ParticipantId>,
    role: ParticipantRole,
) -> Participant {
    let id = participant_id.unwrap_or_else(|| ids::user_seat(place.namespace, place.conversation_id, &user_id));
    Participant { user_id: Some(user_id), ..participant(ParticipantKind::User, id, role) }
}

/// The time of joining is the store's to set.
pub fn participant(kind: ParticipantKind, participant_id: ParticipantId, role: ParticipantRole) -> Participant {
    Participant {
        participant_id,
        kind,
        user_id: None,
        agent_id: None,
        session_id: None,
        role,
        joined_at_ms: 0,
        left_at_ms: None,
        added_by_turn_id: None,
    }
}
