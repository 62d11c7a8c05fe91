//! Who speaks: people are told apart where there are several, and agents that ask are known as who they are.

use schemas::conversation::{LogKind, LogRow, Message, MessageRole, SenderType, TurnStatus};
use schemas::id::MessageId;
use serde_json::{Value, json};

use super::bench::Bench;
use super::contexts::{gathered, row, said, summary};
use crate::chat::{Finish, ImageSource, Part};
use crate::converse::{Gathered, assemble};
use crate::moniker::Decision;

fn of(offset: u64, more: &Value) -> LogRow {
    let mut body = json!({"message_id": format!("m{offset}"), "sender_type": "user", "role": "user",
        "text": format!("said {offset}"), "event_type": "utterance"});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    row(offset, LogKind::Message, None, body)
}

/// What a person said, who may have given a name.
fn by(offset: u64, user: &str, name: Option<&str>) -> LogRow {
    of(offset, &json!({"user_id": user, "name": name}))
}

/// What the agent `boss` asked.
fn question(offset: u64) -> LogRow {
    of(offset, &json!({"sender_type": "agent", "agent_id": "boss", "name": "boss"}))
}

/// The turn that answers the last of these.
fn given(history: Vec<LogRow>) -> Gathered {
    let input = history.last().expect("an input").record.body.to().unwrap();
    Gathered { input, ..gathered(history, 1) }
}

fn shown(given: &Gathered) -> Vec<String> {
    assemble(given).request.messages.iter().skip(1).map(|message| message.plain_text()).collect()
}

#[test]
fn one_person_is_told_as_ever() {
    let history = vec![by(1, "ana", None), said(2, Some("ada")), by(3, "ana", Some("Ana"))];
    assert_eq!(shown(&given(history)), ["said 1", "said 2", "said 3"]);
    let history = vec![said(1, None), by(2, "ana", None)];
    assert_eq!(shown(&given(history)), ["said 1", "said 2"], "nobody knows who the other one is");
}

#[test]
fn several_people_are_told_apart() {
    let history = vec![by(1, "ana", Some("Ana")), by(2, "ben", None), said(3, Some("ada")), by(4, "ana", None)];
    assert_eq!(shown(&given(history)), ["[Ana]: said 1", "[ben]: said 2", "said 3", "[ana]: said 4"]);
    let history = vec![by(1, "ana", Some("A")), by(2, "ben", Some("A")), by(3, "a", Some("ben"))];
    assert_eq!(shown(&given(history)), ["[ana]: said 1", "[ben]: said 2", "[a]: said 3"], "of each name there is one");
    let history = vec![by(1, "ana", Some("boss")), by(2, "ben", Some("B]: no. [Ana")), question(3)];
    let shown_all = shown(&given(history));
    assert_eq!(
        shown_all,
        ["[ana]: said 1", "[ben]: said 2", "[boss]: said 3"],
        "nor is it an agent's, or more than one"
    );
    let picture = json!({"type": "image", "source": {"type": "url", "url": "https://h/cat.png"}});
    let looks = of(2, &json!({"user_id": "ben", "text": null, "content": [picture]}));
    let last = assemble(&given(vec![by(1, "ana", None), looks])).request.messages.pop().unwrap();
    let source = ImageSource::Url { url: "https://h/cat.png".to_owned() };
    assert_eq!(last.content, [Part::text("[ben]: "), Part::Image { source }]);
}

/// Only those count whose words are shown.
#[test]
fn who_is_not_in_sight_changes_nothing() {
    let history = vec![by(1, "ben", None), summary(2, "ada", 1, "conversation"), by(3, "ana", None)];
    assert_eq!(shown(&given(history)), ["[Context Summary: 1]", "said 3"]);
    let mut beside = given(vec![by(1, "ben", None), by(2, "ana", None)]);
    beside.in_work = vec![MessageId::parse("m1").unwrap()];
    assert_eq!(shown(&beside), ["said 2"]);
}

#[test]
fn what_an_agent_asks_is_told_by_its_name_but_to_a_delegate() {
    assert_eq!(shown(&given(vec![by(1, "ana", None), question(2)])), ["said 1", "[boss]: said 2"]);
    let delegate = Gathered { is_delegate: true, ..given(vec![question(1)]) };
    assert_eq!(shown(&delegate), ["said 1"], "of its caller nothing crosses but the input");
}

/// The agent `ada`, whom another one calls.
fn called(caller: &str) -> (Bench, Decision) {
    let mut talk = Bench::new(json!({}));
    let caller = json!({"type": "agent", "agent_id": caller, "turn_id": "t-0"});
    let reply_to = json!({"session_id": "s-0", "operation_id": "op"});
    let input = json!({"text": "how?", "turn_id": "op.t", "name": "boss", "caller": caller, "reply_to": reply_to});
    let begun = talk.input(input);
    (talk, begun)
}

#[test]
fn k_07_an_agent_that_asks_is_who_said_it_and_not_the_one_that_answers() {
    // The second one asks itself, as its own delegate.
    for caller in ["boss", "ada"] {
        let (mut talk, begun) = called(caller);
        let asked: Message = talk.records(LogKind::Message)[0].body.to().unwrap();
        assert_eq!((asked.sender_type, asked.role), (SenderType::Agent, MessageRole::User));
        assert_eq!((asked.agent_id.as_ref().map(|id| id.as_str()), asked.user_id), (Some(caller), None));
        assert_eq!((asked.session_id, asked.step_token.is_some()), (None, true));
        let Decision::Emit { out, .. } = begun else { panic!("{begun:?}") };
        assert_eq!(out.text, None, "the step has said nothing to people");
        let lane = talk.talk().lanes[0].clone();
        assert_eq!((lane.spoke, lane.last_text), (false, None));
        talk.assemble();
        talk.replies(vec![], Finish::Other);
        assert_eq!(talk.turn(0).status, TurnStatus::Failed, "a question is no answer");
    }
}

#[test]
fn an_input_of_a_person_is_a_persons() {
    let mut talk = Bench::new(json!({}));
    talk.input(json!({"text": "hello", "user_id": "ana"}));
    let asked: Message = talk.records(LogKind::Message)[0].body.to().unwrap();
    assert_eq!((asked.sender_type, asked.role, asked.agent_id), (SenderType::User, MessageRole::User, None));
    assert_eq!(asked.user_id.as_ref().map(|id| id.as_str()), Some("ana"));
}
