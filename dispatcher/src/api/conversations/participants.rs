//! `POST` and `GET /api/conversations/{id}/participants`, `DELETE …/{pid}`.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{delete, get, post};
use domain::conversation::join::{self, Join, JoinContext};
use domain::conversation::{change, view};
use domain::ports::{ConversationChange, ConversationKey, Inserted, News, Scope};
use schemas::conversation::{JoinAnswer, Participant, ParticipantPage, ParticipantView};
use schemas::id::{AgentId, ConversationId, Namespace, ParticipantId, SessionId};
use schemas::limits::PARTICIPANTS_MAX;
use schemas::problem::Code;

use super::create::KEY_HEADER;
use super::row;
use crate::answer::{Answer, Refused};
use crate::api::sessions;
use crate::caller::Caller;
use crate::delegated;
use crate::extract::{JsonBody, PathId, PathIds, idempotency_key};
use crate::gateway::Gateway;
use crate::routes::Route;
use crate::seats;

pub fn routes() -> Vec<Route> {
    vec![
        Route::post("/api/conversations/{id}/participants", post(add))
            .scope(Scope::Act)
            .summary("Bring in a user, or an agent with a session of its own. 200: they take part already.")
            .header(KEY_HEADER.0, KEY_HEADER.1)
            .body("JoinBody")
            .answers(201, "JoinAnswer")
            .also_answers(200)
            .refuses(&[Code::InvalidRequest, Code::InvalidJson, Code::TooLarge, Code::UnknownMoniker])
            .refuses(&[Code::ConversationNotFound, Code::ConversationClosed, Code::SessionNotFound, Code::WrongAgent])
            .refuses(&[Code::SessionEnded, Code::SessionExists, Code::ActionConflict, Code::TooManyRequests])
            .refuses(&[Code::StorageFull]),
        Route::get("/api/conversations/{id}/participants", get(list))
            .summary("Who takes part, and after them who has left.")
            .answers(200, "ParticipantPage")
            .refuses(&[Code::InvalidRequest, Code::ConversationNotFound]),
        Route::delete("/api/conversations/{id}/participants/{pid}", delete(leave))
            .scope(Scope::Act)
            .summary("Leave. An agent gets no more messages; turns that are under way go on, and its session stays.")
            .answers(200, "ParticipantView")
            .refuses(&[Code::InvalidRequest, Code::ConversationNotFound, Code::ParticipantNotFound]),
    ]
}

async fn add(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathId(id): PathId<ConversationId>,
    headers: HeaderMap,
    body: JsonBody,
) -> Answer<(StatusCode, Json<JoinAnswer>)> {
    let context = JoinContext {
        namespace: caller.namespace.clone(),
        conversation_id: id.clone(),
        actor: caller.name.clone(),
        participant_id: gateway.fresh_id(),
        idempotency_key: idempotency_key(&headers)?,
    };
    let join = join::parse(&body.required()?, context)?;
    let conversation = row(&gateway, &caller.namespace, &id).await?;
    change::open(&conversation)?;
    let participants = gateway.conversations.participants(&caller.namespace, &id).await?;
    delegated::check(&gateway, &caller.namespace, &conversation, &participants).await?;
    if let Join::Agent(seat) = &join {
        seats::check(&gateway, &caller.namespace, std::slice::from_ref(&**seat), |_| "agent_id".to_owned()).await?;
    }
    if participants.len() >= PARTICIPANTS_MAX {
        let detail =
            format!("{id} has had {PARTICIPANTS_MAX} participants, and no more fit. Create another conversation.");
        return Err(Refused::new(Code::TooManyRequests, detail));
    }
    if let Join::Session { agent_id, session_id, .. } = &join {
        check_session(&gateway, &caller.namespace, &id, agent_id, session_id).await?;
    }
    let joined = gateway.conversations.join(&caller.namespace, &id, join.participant()).await?;
    let missing = || Refused::new(Code::ConversationNotFound, format!("There is no conversation {id}."));
    let (participant, joined) = match joined.ok_or_else(missing)? {
        Inserted::New(participant) => (participant, true),
        Inserted::Existing(participant) => {
            join.check_same(&participant)?;
            (participant, false)
        }
    };
    if conversation.branch_context.is_none() && participant.left_at_ms.is_none() {
        note_branch(&gateway, &caller.namespace, &id, &participant).await?;
    }
    if joined {
        tell(&gateway, &caller.namespace, &id);
    }
    let started = match &join {
        Join::Agent(seat) if participant.left_at_ms.is_none() => {
            seats::start(&gateway, std::slice::from_ref(&**seat)).await?.pop()
        }
        // Who was removed before the session began needs none any more.
        Join::Agent(_) | Join::User(_) | Join::Session { .. } => None,
    };
    let answer = JoinAnswer { participant: view::participant(&participant), joined, started };
    Ok((if joined { StatusCode::CREATED } else { StatusCode::OK }, Json(answer)))
}

/// The first who works in a project says where all do. After the join, so a repeat makes up for what broke off between.
async fn note_branch(
    gateway: &Gateway,
    namespace: &Namespace,
    id: &ConversationId,
    participant: &Participant,
) -> Answer<()> {
    let found = seats::branch_context(gateway, namespace, id, std::slice::from_ref(participant)).await?;
    if found.is_some() {
        let change = ConversationChange { first_branch_context: found, ..ConversationChange::default() };
        gateway.conversations.change(namespace, id, &change).await?;
    }
    Ok(())
}

/// The log has something to say of it.
fn tell(gateway: &Gateway, namespace: &Namespace, id: &ConversationId) {
    let key = ConversationKey { namespace: namespace.clone(), conversation_id: id.clone() };
    gateway.live.tell(&key, News::Logged);
}

/// A session speaks where it was created to speak, and for its own agent.
async fn check_session(
    gateway: &Gateway,
    namespace: &Namespace,
    id: &ConversationId,
    agent: &AgentId,
    session: &SessionId,
) -> Answer<()> {
    let row = sessions::row(gateway, namespace, session.clone()).await?;
    if row.agent_id != *agent {
        let detail = format!("{session} is a session of {}. Send that agent_id.", row.agent_id);
        return Err(Refused::new(Code::WrongAgent, detail));
    }
    if row.spec.conversation_id.as_ref() != Some(id) {
        let what = "is not bound to this conversation; leave it out to give the agent a session that is";
        return Err(Refused::field("session_id", what));
    }
    if row.head.status.is_at_rest() {
        let detail = format!("{session} has ended. Leave session_id out to give the agent another session.");
        return Err(Refused::new(Code::SessionEnded, detail));
    }
    Ok(())
}

async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathId(id): PathId<ConversationId>,
) -> Answer<Json<ParticipantPage>> {
    row(&gateway, &caller.namespace, &id).await?;
    let rows = gateway.conversations.participants(&caller.namespace, &id).await?;
    Ok(Json(ParticipantPage { items: rows.iter().map(view::participant).collect(), next_cursor: None }))
}

async fn leave(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathIds(id, participant): PathIds<ConversationId, ParticipantId>,
) -> Answer<Json<ParticipantView>> {
    row(&gateway, &caller.namespace, &id).await?;
    let left = gateway.conversations.leave(&caller.namespace, &id, &participant).await?;
    tell(&gateway, &caller.namespace, &id);
    left.as_ref().map(view::participant).map(Json).ok_or_else(|| {
        let detail =
            format!("There is no participant {participant}. GET /api/conversations/{id}/participants lists them.");
        Refused::new(Code::ParticipantNotFound, detail)
    })
}
