//! Conversations with plain values: bodies, addressees, deliveries, answers, and what is shown.

mod bodies;
mod delivery;
mod shown;

use schemas::conversation::{Participant, ParticipantRole};
use schemas::id::{AgentId, ConversationId, MessageId, Namespace, ParticipantId, SessionId, UserId};
use schemas::problem::Problem;
use serde_json::Value;

use super::post::{self, NewPost, PostContext};
use super::seat;

pub fn conversation() -> ConversationId {
    ConversationId::parse("c1").unwrap()
}

pub fn post_context() -> PostContext {
    PostContext {
        namespace: Namespace::default_ns(),
        conversation_id: conversation(),
        actor: "token".into(),
        user_id: UserId::parse("token").unwrap(),
        message_id: MessageId::parse("fresh").unwrap(),
        idempotency_key: None,
        now_ms: 7,
    }
}

pub fn posted(body: Value) -> NewPost {
    post::parse(&body, post_context()).unwrap()
}

pub fn fields(problem: &Problem) -> Vec<&str> {
    problem.errors.iter().map(|error| error.field.as_str()).collect()
}

/// An agent that takes part; its seat is `p-<session>`.
pub fn agent(agent: &str, session: &str, role: ParticipantRole) -> Participant {
    let id = ParticipantId::parse(&format!("p-{session}")).unwrap();
    Participant {
        agent_id: Some(AgentId::parse(agent).unwrap()),
        session_id: Some(SessionId::parse(session).unwrap()),
        ..seat::participant(schemas::conversation::ParticipantKind::Agent, id, role)
    }
}
