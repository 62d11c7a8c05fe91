//! A message of a user, as it comes in: checked whole, and made into its record.

use schemas::conversation::{Busy, EventType, LogKind, LogRecord, Message, MessageRole, SenderType};
use schemas::id::{ConversationId, MessageId, Namespace, UserId};
use schemas::json::Json;
use schemas::limits::{ID_BYTES_MAX, RECIPIENTS_MAX};
use schemas::problem::Problem;
use serde_json::{Value, json};

use super::parts::{self, SAID};
use crate::action::fields::{Object, Problems};
use crate::action::hash;
use crate::converse::is_reserved;

/// Fields of the body, besides what is said.
const FIELDS: [&str; 6] = ["message_id", "user_id", "to", "reply_to_message_id", "busy", "actor"];

/// What a body is read with.
#[derive(Debug, Clone)]
pub struct PostContext {
    pub namespace: Namespace,
    pub conversation_id: ConversationId,
    /// Who acts, unless the body names somebody.
    pub actor: String,
    /// Who speaks, unless the body names somebody.
    pub user_id: UserId,
    /// Fresh.
    pub message_id: MessageId,
    /// Another place for the message id.
    pub idempotency_key: Option<String>,
    pub now_ms: i64,
}

/// A message that may be posted.
#[derive(Debug, Clone)]
pub struct NewPost {
    pub namespace: Namespace,
    pub conversation_id: ConversationId,
    pub message: Message,
    /// Who should answer: ids of agents or of participants. Empty: whoever usually does.
    pub to: Vec<String>,
    pub busy: Option<Busy>,
    pub actor: String,
    pub record: LogRecord,
    /// Of all that the client sent: tells a repeat from another message.
    pub body_hash: [u8; 32],
}

/// Checks a message whole. The error names every wrong field.
pub fn parse(body: &Value, ctx: PostContext) -> Result<NewPost, Box<Problem>> {
    let map = parts::whole(body, "{\"text\": \"hello\"}")?;
    let (object, mut problems) = (Object::new("", map), Problems::default());
    let known: Vec<&str> = SAID.iter().chain(&FIELDS).copied().collect();
    object.refuse_unknown(&known, &mut problems);
    let message_id = parts::key(&object, "message_id", ctx.idempotency_key.as_deref(), &mut problems);
    if message_id.as_ref().is_some_and(|id: &MessageId| is_reserved(id.as_str())) {
        problems.add("message_id", "is one that replies, and records of turns and steps, have; choose another one");
    }
    let said = parts::said(&object, &mut problems);
    let user_id = object.id::<UserId>("user_id", &mut problems).unwrap_or(ctx.user_id);
    let to = parts::texts(&object, "to", RECIPIENTS_MAX, ID_BYTES_MAX, &mut problems);
    let reply_to_message_id = object.id("reply_to_message_id", &mut problems);
    let busy = parts::choice(&object, "busy", &Busy::ALL.map(Busy::as_str), Busy::parse, &mut problems);
    let actor = parts::actor(&object, &ctx.actor, &mut problems);
    problems.into_result()?;
    let message = Message {
        message_id: message_id.unwrap_or(ctx.message_id),
        // The turns that it starts name it; it may be none, and it may be several.
        turn_id: None,
        sender_type: SenderType::User,
        role: MessageRole::User,
        user_id: Some(user_id),
        agent_id: None,
        session_id: None,
        name: said.name,
        text: said.text,
        content: said.content,
        data: said.data,
        event_type: EventType::Utterance,
        reply_to_message_id,
        provider_message_id: None,
        metadata: said.metadata,
        iteration: None,
        step_token: None,
        next_step_token: None,
        status: None,
        notes: None,
    };
    let record = record(&message, &to, busy, ctx.now_ms);
    Ok(NewPost {
        body_hash: hash::sha256(record.body.as_str()),
        namespace: ctx.namespace,
        conversation_id: ctx.conversation_id,
        message,
        to,
        busy,
        actor,
        record,
    })
}

/// Everything that makes two messages the same is in the body; the time is not.
fn record(message: &Message, to: &[String], busy: Option<Busy>, at_ms: i64) -> LogRecord {
    let mut body = json!(message);
    if !to.is_empty() {
        body["to"] = json!(to);
    }
    if let Some(busy) = busy {
        body["busy"] = json!(busy);
    }
    LogRecord {
        kind: LogKind::Message,
        id: message.message_id.to_string(),
        turn_id: None,
        agent_id: None,
        session_id: None,
        at_ms,
        // Equal messages are equal texts, however their fields were ordered.
        body: Json::lenient(&hash::canonical(&body)),
    }
}
