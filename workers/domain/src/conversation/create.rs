//! `POST /api/conversations`: a conversation, who takes part, and what was said before.

use schemas::conversation::{
    Conversation, ConversationStatus, EventType, LogKind, LogRecord, Message, MessageRole, Participant,
    ParticipantRole, SenderType, Visibility,
};
use schemas::id::{AgentId, ConversationId, Namespace, UserId};
use schemas::json::Json;
use schemas::limits::TITLE_BYTES_MAX;
use schemas::limits::{FIRST_MESSAGES_MAX, NAME_BYTES_MAX, NEW_PARTICIPANTS_MAX, TAG_BYTES_MAX, TAGS_MAX};
use schemas::problem::Problem;
use serde_json::{Value, json};

use super::ids;
use super::parts::{self, SAID};
use super::seat::{self, AgentSeat, Place};
use crate::action::fields::{Object, Problems};

const FIELDS: &[&str] = &[
    "conversation_id",
    "title",
    "user_id",
    "subject_id",
    "primary_agent_id",
    "tags",
    "metadata",
    "branch_context",
    "visibility",
    "agents",
    "users",
    "messages",
    "actor",
];
const USER_FIELDS: &[&str] = &["user_id", "role"];

/// What a body is read with.
#[derive(Debug, Clone)]
pub struct CreateContext {
    pub namespace: Namespace,
    pub actor: String,
    /// Who creates it, unless the body names somebody.
    pub user_id: UserId,
    /// Fresh.
    pub conversation_id: ConversationId,
    /// Another place for the conversation id.
    pub idempotency_key: Option<String>,
    pub now_ms: i64,
}

/// A conversation that may be created.
#[derive(Debug, Clone)]
pub struct NewConversation {
    pub conversation: Conversation,
    /// All of them, agents too.
    pub participants: Vec<Participant>,
    pub agents: Vec<AgentSeat>,
    /// That it has begun, and what was said before.
    pub records: Vec<LogRecord>,
}

/// Checks a whole body; it may be absent. The error names every wrong field.
pub fn parse(body: &Value, ctx: &CreateContext) -> Result<NewConversation, Box<Problem>> {
    let map = parts::whole(body, "{\"agents\": [{\"agent_id\": \"support\"}]}")?;
    let (object, mut problems) = (Object::new("", map), Problems::default());
    object.refuse_unknown(FIELDS, &mut problems);
    let given = parts::key(&object, "conversation_id", ctx.idempotency_key.as_deref(), &mut problems);
    let conversation_id = given.unwrap_or_else(|| ctx.conversation_id.clone());
    let actor = parts::actor(&object, &ctx.actor, &mut problems);
    let place = Place { namespace: &ctx.namespace, conversation_id: &conversation_id, actor: &actor };
    let creator = object.id::<UserId>("user_id", &mut problems).unwrap_or_else(|| ctx.user_id.clone());
    let agents = agents(&object, place, &mut problems);
    let participants = participants(&object, place, &creator, &agents, &mut problems);
    let mut records = vec![begun(&conversation_id, &creator, ctx.now_ms)];
    records.extend(first_messages(&object, place, &creator, ctx.now_ms, &mut problems));
    let primary_agent_id = primary(&object, &agents, &mut problems);
    let conversation = Conversation {
        title: object.text("title", TITLE_BYTES_MAX, &mut problems).map(str::to_owned),
        created_by: creator.to_string(),
        subject_id: object.text("subject_id", NAME_BYTES_MAX, &mut problems).map(str::to_owned),
        primary_agent_id,
        status: ConversationStatus::Active,
        tags: parts::texts(&object, "tags", TAGS_MAX, TAG_BYTES_MAX, &mut problems),
        metadata: parts::json_or_empty(parts::notes(&object, "metadata", &mut problems)),
        branch_context: parts::notes(&object, "branch_context", &mut problems).map(|notes| Json::of(&notes)),
        visibility: visibility(&object, &mut problems),
        last_offset: 0,
        created_at_ms: ctx.now_ms,
        updated_at_ms: ctx.now_ms,
        conversation_id: conversation_id.clone(),
    };
    problems.into_result()?;
    Ok(NewConversation { conversation, participants, agents, records })
}

fn visibility(object: &Object<'_>, problems: &mut Problems) -> Visibility {
    let names = ["listed", "internal"];
    parts::choice(object, "visibility", &names, Visibility::parse, problems).unwrap_or_default()
}

fn agents(object: &Object<'_>, place: Place<'_>, problems: &mut Problems) -> Vec<AgentSeat> {
    let mut seats: Vec<AgentSeat> = Vec::new();
    let entries = parts::objects(object, "agents", NEW_PARTICIPANTS_MAX, problems);
    for (nth, (path, entry)) in entries.into_iter().enumerate() {
        entry.refuse_unknown(&seat::FIELDS, problems);
        if !entry.has("agent_id") {
            problems.add(format!("{path}.agent_id"), "is missing; name the agent that takes part");
        }
        let Some(agent_id) = entry.id::<AgentId>("agent_id", problems) else { continue };
        // The same agent twice is two sessions of it.
        let id = ids::seat(place.namespace, place.conversation_id, &agent_id, nth);
        seats.extend(seat::agent(&entry, place, agent_id, id, problems));
    }
    seats
}

fn participants(
    object: &Object<'_>,
    place: Place<'_>,
    creator: &UserId,
    agents: &[AgentSeat],
    problems: &mut Problems,
) -> Vec<Participant> {
    let mut all = vec![seat::user(place, creator.clone(), None, ParticipantRole::Owner)];
    for (path, entry) in parts::objects(object, "users", NEW_PARTICIPANTS_MAX, problems) {
        entry.refuse_unknown(USER_FIELDS, problems);
        if !entry.has("user_id") {
            problems.add(format!("{path}.user_id"), "is missing; name the user who takes part");
        }
        let role = seat::role(&entry, ParticipantRole::Observer, problems);
        let Some(user_id) = entry.id::<UserId>("user_id", problems) else { continue };
        match all.iter_mut().find(|known| known.user_id.as_ref() == Some(&user_id)) {
            Some(known) if entry.has("role") => known.role = role,
            Some(_) => {}
            None => all.push(seat::user(place, user_id, None, role)),
        }
    }
    all.extend(agents.iter().map(|seat| seat.participant.clone()));
    all
}

/// Which of the agents is the first to turn to.
fn primary(object: &Object<'_>, agents: &[AgentSeat], problems: &mut Problems) -> Option<AgentId> {
    let takes_part = |id: &AgentId| agents.iter().any(|seat| seat.participant.agent_id.as_ref() == Some(id));
    match object.id::<AgentId>("primary_agent_id", problems) {
        Some(id) if agents.is_empty() || takes_part(&id) => Some(id),
        Some(_) => {
            problems.add(object.path("primary_agent_id"), "is none of agents; add it there, or leave it out");
            None
        }
        None => agents.first().and_then(|seat| seat.participant.agent_id.clone()),
    }
}

fn begun(id: &ConversationId, creator: &UserId, at_ms: i64) -> LogRecord {
    let name = "conversation_started";
    event(name, json!({"type": name, "conversation_id": id, "by": creator}), at_ms)
}

/// An event of the conversation itself; there is one of each name.
pub fn event(name: &str, body: Value, at_ms: i64) -> LogRecord {
    LogRecord {
        kind: LogKind::Event,
        id: name.to_owned(),
        turn_id: None,
        agent_id: None,
        session_id: None,
        at_ms,
        body: Json::of(&body),
    }
}

fn first_messages(
    object: &Object<'_>,
    place: Place<'_>,
    creator: &UserId,
    at_ms: i64,
    problems: &mut Problems,
) -> Vec<LogRecord> {
    let known: Vec<&str> = SAID.iter().copied().chain(["role", "user_id"]).collect();
    let mut records = Vec::new();
    for (nth, (path, entry)) in parts::objects(object, "messages", FIRST_MESSAGES_MAX, problems).into_iter().enumerate()
    {
        entry.refuse_unknown(&known, problems);
        if !entry.has("role") {
            problems.add(format!("{path}.role"), "is missing; send system or user");
        }
        let by_user = parts::choice(&entry, "role", &["system", "user"], |text| Some(text == "user"), problems);
        let user_id = entry.id::<UserId>("user_id", problems).unwrap_or_else(|| creator.clone());
        let said = parts::said(&entry, problems);
        let Some(by_user) = by_user else { continue };
        let message = Message {
            message_id: ids::first_message(place.namespace, place.conversation_id, nth),
            turn_id: None,
            sender_type: if by_user { SenderType::User } else { SenderType::System },
            role: if by_user { MessageRole::User } else { MessageRole::System },
            user_id: by_user.then_some(user_id),
            agent_id: None,
            session_id: None,
            name: said.name,
            text: said.text,
            content: said.content,
            data: said.data,
            event_type: EventType::Utterance,
            reply_to_message_id: None,
            provider_message_id: None,
            metadata: said.metadata,
            iteration: None,
            step_token: None,
            next_step_token: None,
            status: None,
            notes: None,
        };
        records.push(LogRecord {
            kind: LogKind::Message,
            id: message.message_id.to_string(),
            turn_id: None,
            agent_id: None,
            session_id: None,
            at_ms,
            body: Json::of(&message),
        });
    }
    records
}
