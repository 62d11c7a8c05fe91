//! How a message reaches those who are to answer: as a turn of its own, as an input, as a note, or not at all.

use schemas::action::{Action, ActionType, NewAction, Urgency};
use schemas::conversation::{Busy, Message, PostOutcome, Responder};
use schemas::id::TurnId;
use schemas::json::Json;
use schemas::problem::{Code, Problem};
use schemas::session::SessionStatus;
use serde_json::{Map, Value, json};

use super::address::Addressee;
use super::ids;
use super::post::NewPost;
use crate::action::MODE_NOW;
use crate::converse::{IN_REPLY_TO, quote};

/// How the session of an addressee stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Standing {
    /// `None`: there is no such session.
    pub status: Option<SessionStatus>,
    /// Whether its moniker takes input; one that does not gets guidance.
    pub takes_input: bool,
    /// Whether an input starts a turn there; other agents take it in a step, and what steps say is said.
    pub has_turns: bool,
    /// Whether it has active turns, or an input that will be one.
    pub is_busy: bool,
    /// What its settings, or else its persona, say of messages while it is busy.
    pub when_busy: Option<Busy>,
}

impl Standing {
    fn ended(&self) -> bool {
        self.status.is_none_or(SessionStatus::is_at_rest)
    }
}

/// What is to become of a message at one agent.
#[derive(Debug, Clone)]
pub struct Delivery {
    pub to: Addressee,
    /// `None`: it does not reach it, for the reason.
    pub action: Option<NewAction>,
    pub refusal: Option<String>,
}

/// Decides for all addressees.
///
/// # Errors
/// Nobody that is to answer can, one that is named cannot, or one is busy and the message is not for
/// busy agents. Then nothing is written.
pub fn deliver(post: &NewPost, addressees: Vec<(Addressee, Standing)>) -> Result<Vec<Delivery>, Box<Problem>> {
    deliver_reply(post, None, addressees)
}

/// The same for a message that replies to another one. A turn that begins with it reads that one; turns that are under
/// way are told the message as a note, and so they are told what it replies to.
///
/// # Errors
/// Those of [`deliver`].
pub fn deliver_reply(
    post: &NewPost,
    replied_to: Option<&Message>,
    addressees: Vec<(Addressee, Standing)>,
) -> Result<Vec<Delivery>, Box<Problem>> {
    let ended: Vec<&Addressee> = addressees.iter().filter(|(_, how)| how.ended()).map(|(one, _)| one).collect();
    let all_ended = !addressees.is_empty() && ended.len() == addressees.len();
    if let Some(one) = ended.iter().find(|one| one.is_named || all_ended) {
        return Err(Box::new(Problem::new(Code::SessionEnded, ended_detail(one))));
    }
    let rejects = |how: &Standing| !how.ended() && how.is_busy && mode(post, how) == Busy::Reject;
    if let Some((one, _)) = addressees.iter().find(|(_, how)| rejects(how)) {
        let detail = format!(
            "{} has active turns, and the message is not for a busy agent. Nothing was written: send it again later, \
             or with busy enqueue, steer or interrupt.",
            one.agent_id
        );
        return Err(Box::new(Problem::new(Code::AgentBusy, detail)));
    }
    let quote = replied_to.and_then(quote);
    let one = |(to, how): (Addressee, Standing)| match how.ended() {
        true => Delivery { refusal: Some(ended_detail(&to)), to, action: None },
        false => Delivery { action: Some(action((post, quote.as_deref()), &to, &how)), to, refusal: None },
    };
    Ok(addressees.into_iter().map(one).collect())
}

fn ended_detail(one: &Addressee) -> String {
    format!(
        "The session {} of {} has ended. Give the agent another one with POST /api/conversations/{{id}}/participants, \
         and take the old seat {} away.",
        one.session_id, one.agent_id, one.participant.participant_id
    )
}

fn mode(post: &NewPost, how: &Standing) -> Busy {
    post.busy.or(how.when_busy).unwrap_or_default()
}

fn action((post, quote): (&NewPost, Option<&str>), to: &Addressee, how: &Standing) -> NewAction {
    let (ns, conversation, message) = (&post.namespace, &post.conversation_id, &post.message.message_id);
    let way = if how.is_busy { mode(post, how) } else { Busy::Enqueue };
    let turn = ids::turn(ns, conversation, message, &to.session_id);
    // The turns it is for may have ended by then: it starts this one.
    let instead = how.has_turns.then_some(&turn);
    let (kind, payload) = match way {
        Busy::Steer => (ActionType::Interrupt, guidance((post, quote), instead, false)),
        Busy::Interrupt => (ActionType::Interrupt, guidance((post, quote), instead, true)),
        Busy::Enqueue | Busy::Reject if how.takes_input => (ActionType::Input, input(post, instead)),
        // Its agent takes no input: the message is something to think of at the next step.
        Busy::Enqueue | Busy::Reject => (ActionType::Interrupt, guidance((post, quote), None, false)),
    };
    NewAction {
        namespace: ns.clone(),
        action_id: ids::delivery(ns, conversation, message, &to.session_id),
        kind,
        session_id: Some(to.session_id.clone()),
        agent_id: Some(to.agent_id.clone()),
        urgency: Urgency::Normal,
        actor: post.actor.clone(),
        payload: Json::of(&payload),
        metadata: Json::of(&json!({"conversation_id": conversation, "message_id": message})),
        body_hash: post.body_hash,
        session: None,
        seat: None,
    }
}

/// `turn` is what the input starts, where it starts one.
fn input(post: &NewPost, turn: Option<&TurnId>) -> Value {
    let message = &post.message;
    let mut payload = Map::new();
    payload.insert("message_id".into(), json!(message.message_id));
    if let Some(turn) = turn {
        payload.insert("turn_id".into(), json!(turn));
    }
    payload.insert("text".into(), json!(message.text.as_deref().unwrap_or_default()));
    payload.insert("user_id".into(), json!(message.user_id));
    payload.extend(beside(message));
    if let Some(replied_to) = &message.reply_to_message_id {
        payload.insert("reply_to_message_id".into(), json!(replied_to));
    }
    if let Some(metadata) = &message.metadata {
        payload.insert("metadata".into(), metadata.clone());
    }
    Value::Object(payload)
}

/// What a message says beside its words. All of it came within one request, so it has a bound.
fn beside(message: &Message) -> impl Iterator<Item = (String, Value)> {
    let name = message.name.as_ref().map(|name| json!(name));
    let all = [("content", message.content.clone()), ("name", name), ("data", message.data.clone())];
    all.into_iter().filter_map(|(field, value)| Some((field.to_owned(), value?)))
}

/// `turn` is what the message starts if no turn can take it any more; `converse` reads it.
fn guidance((post, quote): (&NewPost, Option<&str>), turn: Option<&TurnId>, now: bool) -> Value {
    let message = &post.message;
    let mut guidance = json!({"note": message.text.as_deref().unwrap_or_default(), "message_id": message.message_id});
    for (field, value) in beside(message) {
        guidance[field] = value;
    }
    if let Some(quote) = quote {
        guidance[IN_REPLY_TO] = json!(quote);
    }
    if let Some(turn) = turn {
        let mut as_turn = json!({"turn_id": turn, "user_id": message.user_id, "at_ms": post.record.at_ms});
        if let Some(replied_to) = &message.reply_to_message_id {
            as_turn["reply_to_message_id"] = json!(replied_to);
        }
        if let Some(metadata) = &message.metadata {
            as_turn["metadata"] = metadata.clone();
        }
        guidance["as_turn"] = as_turn;
    }
    match now {
        true => json!({"guidance": guidance, "mode": MODE_NOW}),
        false => json!({ "guidance": guidance }),
    }
}

/// What the ledger made of the action of a delivery.
#[derive(Debug)]
pub enum Taken<'a> {
    New(&'a Action),
    /// The first time's, whatever was decided now.
    Before(&'a Action),
    Refused(Code, &'a str),
}

/// What the client is told. A repeat is told what the first time led to.
pub fn answer(delivery: &Delivery, taken: Option<Taken<'_>>) -> Responder {
    let to = &delivery.to;
    let mut answer = Responder {
        agent_id: to.agent_id.clone(),
        session_id: to.session_id.clone(),
        participant_id: to.participant.participant_id.clone(),
        outcome: PostOutcome::Refused,
        turn_id: None,
        action_id: None,
        accepted: false,
        code: None,
        detail: None,
    };
    match taken {
        Some(Taken::New(action)) => tell(&mut answer, action, true),
        Some(Taken::Before(action)) => tell(&mut answer, action, false),
        Some(Taken::Refused(code, detail)) => {
            answer.action_id = delivery.action.as_ref().map(|action| action.action_id.clone());
            (answer.code, answer.detail) = (Some(code), Some(detail.to_owned()));
        }
        None => (answer.code, answer.detail) = (Some(Code::SessionEnded), delivery.refusal.clone()),
    }
    answer
}

fn tell(answer: &mut Responder, action: &Action, is_new: bool) {
    let payload = action.payload.to_value();
    let turn = payload["turn_id"].as_str().and_then(|text| TurnId::parse(text).ok());
    answer.outcome = match action.kind {
        ActionType::Input if turn.is_some() => PostOutcome::Turn,
        ActionType::Input => PostOutcome::Delivered,
        _ if payload["mode"] == MODE_NOW => PostOutcome::Interrupted,
        _ => PostOutcome::Steered,
    };
    answer.turn_id = turn;
    answer.action_id = Some(action.action_id.clone());
    answer.accepted = is_new;
}
