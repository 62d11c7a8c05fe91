//! Who answers a message, and how it reaches them.

use schemas::action::{Action, ActionType, NewAction, Urgency};
use schemas::conversation::{Busy, Message, ParticipantRole, PostOutcome, SenderType};
use schemas::id::{AgentId, SessionId, Shard};
use schemas::problem::Code;
use schemas::session::SessionStatus;
use serde_json::json;

use super::{agent, fields, posted};
use crate::conversation::address::{Addressee, addressees};
use crate::conversation::deliver::{Standing, Taken, answer, deliver, deliver_reply};
use crate::conversation::post::NewPost;

const IDLE: Standing = Standing {
    status: Some(SessionStatus::Running),
    takes_input: true,
    has_turns: true,
    is_busy: false,
    when_busy: None,
};
const BUSY: Standing = Standing { is_busy: true, ..IDLE };
const ENDED: Standing = Standing { status: Some(SessionStatus::Stopped), ..IDLE };
/// It takes input, and has no turns.
const PLAIN: Standing = Standing { has_turns: false, ..IDLE };

fn sessions(chosen: &[Addressee]) -> Vec<&str> {
    chosen.iter().map(|one| one.session_id.as_str()).collect()
}

fn said_by(agent: &str, session: &str) -> Message {
    Message {
        sender_type: SenderType::Agent,
        agent_id: Some(AgentId::parse(agent).unwrap()),
        session_id: Some(SessionId::parse(session).unwrap()),
        ..posted(json!({"text": "x"})).message
    }
}

#[test]
fn responders_answer_unless_a_message_says_who_should() {
    let left =
        schemas::conversation::Participant { left_at_ms: Some(1), ..agent("a3", "s3", ParticipantRole::Responder) };
    let all = [
        agent("a1", "s1", ParticipantRole::Responder),
        agent("a2", "s2", ParticipantRole::Responder),
        agent("a4", "s4", ParticipantRole::Observer),
        agent("a1", "s5", ParticipantRole::Responder),
        left,
    ];
    let to = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(sessions(&addressees(&[], None, &all).unwrap()), ["s1", "s2", "s5"]);
    assert_eq!(sessions(&addressees(&to(&["a4"]), None, &all).unwrap()), ["s4"], "an observer may be asked");
    assert_eq!(sessions(&addressees(&to(&["a1", "p-s5"]), None, &all).unwrap()), ["s1", "s5"], "each once");
    let reply = |message: &Message| addressees(&[], Some(message), &all);
    assert_eq!(sessions(&reply(&said_by("a1", "s5")).unwrap()), ["s5"]);
    assert_eq!(sessions(&reply(&said_by("a2", "gone")).unwrap()), ["s2"], "another session of the same agent");
    assert_eq!(sessions(&reply(&posted(json!({"text": "x"})).message).unwrap()), ["s1", "s2", "s5"]);
    assert_eq!(fields(&reply(&said_by("a3", "s3")).unwrap_err()), ["reply_to_message_id"]);
    let problem = addressees(&to(&["a1", "a9", "p-s3"]), None, &all).unwrap_err();
    assert_eq!(fields(&problem), ["to[1]", "to[2]"]);
    assert!(problem.detail.contains("a1, a2, a4, a1"), "{}", problem.detail);
}

fn one(post: &NewPost, how: Standing) -> NewAction {
    let to = addressees(&[], None, &[agent("a1", "s1", ParticipantRole::Responder)]).unwrap().remove(0);
    deliver(post, vec![(to, how)]).unwrap().remove(0).action.unwrap()
}

#[test]
fn an_idle_agent_gets_a_turn() {
    let post = posted(json!({"message_id": "m1", "text": "hello", "user_id": "ana", "reply_to_message_id": "m0",
                             "busy": "interrupt"}));
    let action = one(&post, IDLE);
    let payload = action.payload.to_value();
    assert_eq!(action.kind, ActionType::Input);
    assert_eq!(
        (&payload["message_id"], &payload["text"], &payload["user_id"]),
        (&json!("m1"), &json!("hello"), &json!("ana"))
    );
    assert_eq!(payload["reply_to_message_id"], "m0");
    assert!(payload["turn_id"].as_str().unwrap().starts_with("turn-"));
    assert_eq!(action.session_id.unwrap().as_str(), "s1");
}

#[test]
fn a_busy_agent_gets_what_the_message_or_its_settings_say() {
    let post = |busy: Option<&str>| posted(json!({"message_id": "m1", "text": "stop", "busy": busy}));
    assert_eq!(one(&post(None), BUSY).kind, ActionType::Input, "a turn of its own, in parallel");
    let steer = one(&post(Some("steer")), BUSY);
    let turn = one(&post(None), BUSY).payload.to_value()["turn_id"].clone();
    let as_turn = json!({"turn_id": turn, "user_id": "token", "at_ms": 7});
    let note = json!({"guidance": {"note": "stop", "message_id": "m1", "as_turn": as_turn}});
    assert_eq!((steer.kind, steer.payload.to_value()), (ActionType::Interrupt, note.clone()));
    assert_eq!(one(&post(None), Standing { when_busy: Some(Busy::Steer), ..BUSY }).payload.to_value(), note);
    let now = one(&post(Some("interrupt")), Standing { when_busy: Some(Busy::Steer), ..BUSY });
    assert_eq!(now.payload.to_value()["mode"], "now");
    let (ids, hashes): (Vec<_>, Vec<_>) =
        [IDLE, BUSY].map(|how| one(&post(Some("steer")), how)).into_iter().map(|a| (a.action_id, a.body_hash)).unzip();
    assert_eq!((&ids[0], hashes[0]), (&ids[1], hashes[1]), "a repeat is a repeat, however busy the agent is by then");
}

#[test]
fn an_agent_that_takes_no_input_gets_guidance() {
    let action = one(&posted(json!({"message_id": "m1", "text": "hi"})), Standing { takes_input: false, ..PLAIN });
    let guidance = json!({"note": "hi", "message_id": "m1"});
    assert_eq!((action.kind, &action.payload.to_value()["guidance"]), (ActionType::Interrupt, &guidance));
}

#[test]
fn an_agent_without_turns_gets_the_message_and_no_turn_is_promised() {
    let post = posted(json!({"message_id": "m1", "text": "hi", "user_id": "ana", "busy": "steer"}));
    let action = one(&post, PLAIN);
    let payload = json!({"message_id": "m1", "text": "hi", "user_id": "ana"});
    assert_eq!((action.kind, action.payload.to_value()), (ActionType::Input, payload));
    // Guidance that comes late would start none either.
    let steer = one(&post, Standing { is_busy: true, ..PLAIN });
    let note = json!({"guidance": {"note": "hi", "message_id": "m1"}});
    assert_eq!((steer.kind, steer.payload.to_value()), (ActionType::Interrupt, note));
    let to = addressees(&[], None, &[agent("a1", "s1", ParticipantRole::Responder)]).unwrap().remove(0);
    let delivery = deliver(&post, vec![(to, PLAIN)]).unwrap().remove(0);
    let action = accepted(&action);
    for (taken, is_new) in [(Taken::New(&action), true), (Taken::Before(&action), false)] {
        let told = answer(&delivery, Some(taken));
        assert_eq!((told.outcome, told.turn_id, told.accepted), (PostOutcome::Delivered, None, is_new));
        assert_eq!(told.action_id.as_ref(), Some(&action.action_id));
    }
}

#[test]
fn what_steers_brings_its_pictures() {
    let content = json!([{"type": "image", "source": {"type": "url", "url": "https://h/cat.png"}}]);
    let post = posted(json!({"message_id": "m1", "content": content, "busy": "steer"}));
    let action = one(&post, BUSY);
    let guidance = action.payload.to_value()["guidance"].clone();
    assert_eq!((action.kind, &guidance["note"], &guidance["content"]), (ActionType::Interrupt, &json!(""), &content));
}

#[test]
fn what_a_message_has_beside_its_words_reaches_its_agents() {
    let said = |busy: &str| {
        posted(json!({"message_id": "m1", "text": "hello", "name": "Ana", "data": {"n": 1}, "metadata": {"k": 1},
                      "busy": busy}))
    };
    let (name, data, metadata) = (json!("Ana"), json!({"n": 1}), json!({"k": 1}));
    let input = one(&said("enqueue"), PLAIN).payload.to_value();
    assert_eq!((&input["name"], &input["data"], &input["metadata"]), (&name, &data, &metadata));
    let guidance = one(&said("steer"), BUSY).payload.to_value()["guidance"].clone();
    assert_eq!((&guidance["name"], &guidance["data"]), (&name, &data));
    assert_eq!((guidance.get("metadata"), &guidance["as_turn"]["metadata"]), (None, &metadata), "it is of the turn");
}

#[test]
fn who_is_at_work_is_told_what_a_message_replies_to() {
    let post = posted(json!({"message_id": "m1", "text": "why?", "reply_to_message_id": "m0", "busy": "steer"}));
    let replied_to = said_by("a1", "s1");
    let to = addressees(&[], Some(&replied_to), &[agent("a1", "s1", ParticipantRole::Responder)]).unwrap();
    let payload = |how: Standing| {
        let delivery = deliver_reply(&post, Some(&replied_to), vec![(to[0].clone(), how)]).unwrap().remove(0);
        delivery.action.unwrap().payload.to_value()
    };
    assert_eq!(payload(BUSY)["guidance"]["in_reply_to"], "x");
    assert_eq!(payload(IDLE).get("in_reply_to"), None, "a turn that begins with it reads that one");
}

#[test]
fn refusals_write_nothing() {
    let all = [agent("a1", "s1", ParticipantRole::Responder), agent("a2", "s2", ParticipantRole::Responder)];
    let with = |body: serde_json::Value, hows: [Standing; 2]| {
        let post = posted(body);
        let chosen = addressees(&post.to, None, &all).unwrap();
        deliver(&post, chosen.into_iter().zip(hows).collect())
    };
    let code = |result: Result<Vec<_>, Box<schemas::problem::Problem>>| result.map(|_| ()).unwrap_err().code;
    assert_eq!(code(with(json!({"text": "x", "busy": "reject"}), [IDLE, BUSY])), Code::AgentBusy);
    assert_eq!(code(with(json!({"text": "x"}), [ENDED, Standing { status: None, ..IDLE }])), Code::SessionEnded);
    assert_eq!(code(with(json!({"text": "x", "to": ["a1", "a2"]}), [IDLE, ENDED])), Code::SessionEnded);
    let partly = with(json!({"text": "x", "busy": "reject"}), [IDLE, ENDED]).unwrap();
    assert!(partly[0].action.is_some() && partly[1].action.is_none());
    let told = answer(&partly[1], None);
    assert_eq!((told.outcome, told.code), (PostOutcome::Refused, Some(Code::SessionEnded)));
    assert!(with(json!({"text": "x"}), [BUSY, BUSY]).is_ok());
    assert!(deliver(&posted(json!({"text": "x"})), Vec::new()).unwrap().is_empty(), "nobody need answer");
}

fn accepted(new: &NewAction) -> Action {
    Action {
        namespace: new.namespace.clone(),
        action_id: new.action_id.clone(),
        kind: new.kind,
        session_id: new.session_id.clone().unwrap(),
        agent_id: new.agent_id.clone().unwrap(),
        conversation_id: None,
        shard: Shard(0),
        session_seq: 1,
        urgency: Urgency::Normal,
        actor: new.actor.clone(),
        payload: new.payload.clone(),
        metadata: new.metadata.clone(),
        accepted_at_ms: 0,
        opens: None,
    }
}

#[test]
fn a_repeat_is_told_what_the_first_time_led_to() {
    let post = posted(json!({"message_id": "m1", "text": "x", "busy": "interrupt"}));
    let chosen = addressees(&[], None, &[agent("a1", "s1", ParticipantRole::Responder)]).unwrap();
    let decide = |how| deliver(&post, vec![(chosen[0].clone(), how)]).unwrap().remove(0);
    let (idle, busy) = (decide(IDLE), decide(BUSY));
    let first = accepted(idle.action.as_ref().unwrap());
    let told = answer(&idle, Some(Taken::New(&first)));
    assert_eq!((told.outcome, told.accepted), (PostOutcome::Turn, true));
    assert!(told.turn_id.is_some());
    let again = answer(&busy, Some(Taken::Before(&first)));
    assert_eq!((again.outcome, again.accepted, &again.turn_id), (PostOutcome::Turn, false, &told.turn_id));
    let cut_in = accepted(busy.action.as_ref().unwrap());
    let told = answer(&busy, Some(Taken::New(&cut_in)));
    assert_eq!((told.outcome, told.turn_id), (PostOutcome::Interrupted, None));
    let refused = answer(&busy, Some(Taken::Refused(Code::SessionEnded, "too late")));
    assert_eq!((refused.outcome, refused.detail.as_deref()), (PostOutcome::Refused, Some("too late")));
}
