//! `POST /api/conversations/{id}/participants`: one more who takes part.

use schemas::conversation::{Conversation, Participant, ParticipantKind, ParticipantRole, Visibility};
use schemas::id::{AgentId, ConversationId, Namespace, ParticipantId, SessionId, UserId};
use schemas::problem::{Code, Problem};
use serde_json::Value;

use super::parts;
use super::seat::{self, AgentSeat, Place};
use crate::action::fields::{Object, Problems, wrong};
use crate::talk;

const FIELDS: &[&str] =
    &["participant_id", "user_id", "agent_id", "session_id", "role", "moniker", "config", "task", "actor"];
/// What only a new session has.
const OF_SESSION: [&str; 3] = ["moniker", "config", "task"];

/// What a body is read with.
#[derive(Debug, Clone)]
pub struct JoinContext {
    pub namespace: Namespace,
    pub conversation_id: ConversationId,
    pub actor: String,
    /// Fresh.
    pub participant_id: ParticipantId,
    /// Another place for the participant id.
    pub idempotency_key: Option<String>,
}

/// Who is to join.
#[derive(Debug, Clone)]
pub enum Join {
    User(Participant),
    /// With a session of its own.
    Agent(Box<AgentSeat>),
    /// With a session that there is.
    Session {
        participant: Participant,
        agent_id: AgentId,
        session_id: SessionId,
    },
}

impl Join {
    pub fn participant(&self) -> &Participant {
        match self {
            Self::User(participant) | Self::Session { participant, .. } => participant,
            Self::Agent(seat) => &seat.participant,
        }
    }

    /// Whether a participant who was there is who is to join, so that this is a repeat.
    ///
    /// # Errors
    /// The id is somebody else's.
    pub fn check_same(&self, known: &Participant) -> Result<(), Box<Problem>> {
        if talk::is_same(self.participant(), known) {
            return Ok(());
        }
        let what = format!("{} is somebody else's here; leave it out to get a fresh one", known.participant_id);
        Err(wrong("participant_id", what))
    }
}

/// Checks a whole body. The error names every wrong field.
pub fn parse(body: &Value, ctx: JoinContext) -> Result<Join, Box<Problem>> {
    let map = parts::whole(body, "{\"agent_id\": \"support\"}")?;
    let (object, mut problems) = (Object::new("", map), Problems::default());
    object.refuse_unknown(FIELDS, &mut problems);
    let given = parts::key(&object, "participant_id", ctx.idempotency_key.as_deref(), &mut problems);
    let actor = parts::actor(&object, &ctx.actor, &mut problems);
    let place = Place { namespace: &ctx.namespace, conversation_id: &ctx.conversation_id, actor: &actor };
    let user_id = object.id::<UserId>("user_id", &mut problems);
    let agent_id = object.id::<AgentId>("agent_id", &mut problems);
    let session_id = object.id::<SessionId>("session_id", &mut problems);
    match (object.has("user_id"), object.has("agent_id")) {
        (false, false) => problems.add("agent_id", "is missing; name an agent_id, or a user_id"),
        (true, true) => problems.add("agent_id", "stands beside user_id; each takes a request of its own"),
        (true, false) => {
            refuse(&object, &["session_id", "moniker", "config", "task"], "users have none", &mut problems)
        }
        (false, true) if object.has("session_id") => {
            refuse(&object, &OF_SESSION, "the session has its own already; leave out one of them", &mut problems);
        }
        (false, true) => {}
    }
    let join = match (user_id, agent_id, session_id) {
        (Some(user), _, _) => {
            let role = seat::role(&object, ParticipantRole::Observer, &mut problems);
            // Somebody who has left comes back to a seat of their own.
            let id = given.unwrap_or(ctx.participant_id);
            Some(Join::User(seat::user(place, user, Some(id), role)))
        }
        (None, Some(agent_id), None) => {
            let id = given.unwrap_or(ctx.participant_id);
            let seat = seat::agent(&object, place, agent_id, id, &mut problems);
            seat.map(|seat| Join::Agent(Box::new(seat)))
        }
        (None, Some(agent_id), Some(session_id)) => {
            let role = seat::role(&object, ParticipantRole::Responder, &mut problems);
            let seat = seat::participant(ParticipantKind::Agent, given.unwrap_or(ctx.participant_id), role);
            let (agent, session) = (Some(agent_id.clone()), Some(session_id.clone()));
            let participant = Participant { agent_id: agent, session_id: session, ..seat };
            Some(Join::Session { participant, agent_id, session_id })
        }
        (None, None, _) => None,
    };
    problems.into_result()?;
    join.ok_or_else(|| wrong("agent_id", "is missing; name an agent_id, or a user_id".to_owned()))
}

fn refuse(object: &Object<'_>, names: &[&str], why: &str, problems: &mut Problems) {
    for name in names.iter().filter(|name| object.has(name)) {
        problems.add(object.path(name), why);
    }
}

/// Of an internal conversation: the session that opened it by being created there, if one did. Clients open such
/// conversations as well, and give their agents seats first; whoever is looped in was brought by a turn.
pub fn opener<'p>(conversation: &Conversation, participants: &'p [Participant]) -> Option<&'p SessionId> {
    if conversation.visibility != Visibility::Internal {
        return None;
    }
    let may_be_it = |one: &&Participant| {
        let has_own_seat = one.session_id.as_ref().is_some_and(|id| id.as_str() == one.participant_id.as_str());
        has_own_seat && one.added_by_turn_id.is_none() && one.agent_id == conversation.primary_agent_id
    };
    participants.iter().filter(may_be_it).min_by_key(|one| one.joined_at_ms)?.session_id.as_ref()
}

/// Why nobody comes into the conversation of a call of the session `caller`, which talks in `place`.
pub fn of_a_call(id: &ConversationId, caller: &SessionId, place: Option<&ConversationId>) -> Box<Problem> {
    let instead = place.map_or_else(|| "another conversation".to_owned(), |place| format!("{place} instead"));
    let detail = format!(
        "{id} belongs to a call of session {caller}: the agent that was called works there alone, and answers its \
         caller. Nobody joins it or speaks in it; talk in {instead}."
    );
    Box::new(Problem::new(Code::ConversationClosed, detail))
}

#[cfg(test)]
mod tests {
    use schemas::id::TurnId;
    use schemas::json::Json;
    use schemas::session::SessionSpec;

    use super::*;
    use crate::conversation::tests::{agent, conversation};
    use crate::talk::{opened_by, participant_of};

    #[test]
    fn who_was_created_with_an_internal_conversation_opened_it() {
        let (ada, bob) = (AgentId::parse("ada").unwrap(), AgentId::parse("bob").unwrap());
        let session = |text: &str| SessionId::parse(text).unwrap();
        let spec = SessionSpec {
            moniker: "converse".to_owned(),
            task: None,
            config: Json::null(),
            stop_on_done: true,
            max_steps: None,
            max_runtime_ms: None,
            loop_interval_ms: 0,
            conversation_id: Some(conversation()),
            parent: Some(session("caller")),
        };
        let opened = opened_by(&conversation(), "session:caller", &ada, &spec, 5);
        let turn = TurnId::parse("t").unwrap();
        let made = |id: &str, who: &AgentId, by: Option<&TurnId>, at_ms: i64| {
            participant_of(&session(id), who, by, at_ms).unwrap()
        };
        let all = [
            agent("ada", "seated", ParticipantRole::Responder),
            made("guest", &ada, Some(&turn), 1),
            made("other", &bob, None, 1),
            made("later", &ada, None, 9),
            made("delegate", &ada, None, 5),
        ];
        assert_eq!(opener(&opened, &all), Some(&session("delegate")));
        assert_eq!(opener(&opened, &all[..3]), None, "a client opened it");
        let listed = Conversation { visibility: Visibility::Listed, ..opened };
        assert_eq!(opener(&listed, &all), None);
    }

    #[test]
    fn where_to_talk_instead_is_told() {
        let (caller, place) = (SessionId::parse("s1").unwrap(), ConversationId::parse("c0").unwrap());
        let told = of_a_call(&conversation(), &caller, Some(&place));
        assert_eq!(told.code, Code::ConversationClosed);
        for part in ["c1 belongs to a call of session s1", "talk in c0 instead"] {
            assert!(told.detail.contains(part), "{}", told.detail);
        }
        assert!(of_a_call(&conversation(), &caller, None).detail.contains("talk in another conversation"));
    }
}
