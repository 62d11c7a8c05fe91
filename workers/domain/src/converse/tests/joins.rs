//! Agents that are looped in: who takes part already is asked where they are, and sits there once.

use schemas::action::ActionType;
use schemas::conversation::Participant;
use schemas::id::{AgentId, DefinitionId, SessionId};
use serde_json::{Value, json};

use super::bench::Bench;
use crate::converse::{Seat, seats};
use crate::moniker::FollowUp;

fn seat(agent: &str, session: &str) -> Seat {
    Seat { agent_id: AgentId::parse(agent).unwrap(), session_id: SessionId::parse(session).unwrap() }
}

/// A turn whose model may loop in the architect.
fn asked(config: Value, more: &Value) -> Bench {
    let mut tool = json!({"target_type": "agent", "target_id": "architect", "invocation_mode": "loop_in"});
    tool.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Bench::new(config).with_tool("arch", tool)
}

fn question() -> Value {
    json!({"question": "how?"})
}

fn of_kind(talk: &Bench, kind: ActionType) -> Vec<&FollowUp> {
    talk.follow_ups.iter().filter(|one| one.kind == kind).collect()
}

/// Both calls are for one seat, whose session the first of them makes, each as a turn of its own.
fn sits_once(talk: &Bench) {
    let made = of_kind(talk, ActionType::Create);
    let inputs = of_kind(talk, ActionType::Input);
    assert_eq!((made.len(), inputs.len()), (2, 2), "{:?}", talk.follow_ups);
    let at_seat = |one: &&FollowUp| one.seat.is_some() && one.agent_id == inputs[0].agent_id;
    assert!(made.iter().chain(&inputs).all(at_seat), "{:?}", talk.follow_ups);
    let joined = talk.talk().joined;
    assert!(joined.iter().all(|one| one.session_id == made[0].session_id), "as far as is known: {joined:?}");
    let turn = |input: &FollowUp| input.payload.to_value()["turn_id"].clone();
    assert_ne!(turn(inputs[0]), turn(inputs[1]));
}

#[test]
fn who_takes_part_already_is_asked_where_they_are() {
    let mut talk = asked(json!({}), &json!({}));
    talk.seats = vec![seat("architect", "s-arch")];
    talk.say("ask the architect");
    talk.assemble();
    talk.reply("", &[("c1", "arch", question())]);
    finds_its_seat(&talk.follow_ups, &[ActionType::Create, ActionType::Input]);
    let given = talk.follow_ups[1].payload.to_value();
    assert_eq!((&given["text"], &given["caller"]["depth"]), (&json!("how?"), &json!(1)));
    assert!(format!("{:?}", talk.request().messages.last()).contains("s-arch"));
    assert!(talk.talk().children().is_empty(), "it is not its caller's to pause");
    talk.guide(json!({"cancel_turn": "in-1"}));
    let [there, at_seat] = &talk.follow_ups[2..] else { panic!("{:?}", talk.follow_ups) };
    assert_eq!((&there.kind, there.session_id.as_str()), (&ActionType::Interrupt, "s-arch"), "also if it has left");
    finds_its_seat(std::slice::from_ref(at_seat), &[ActionType::Interrupt]);
}

/// The session that sat there may end before they are accepted, so that they name another.
fn finds_its_seat(follow_ups: &[FollowUp], kinds: &[ActionType]) {
    assert!(follow_ups.iter().map(|one| &one.kind).eq(kinds), "{follow_ups:?}");
    for one in follow_ups {
        assert_eq!(one.seat.as_ref().map(|id| id.as_str()), Some("c-1"));
        assert_eq!(one.agent_id.as_ref().map(|id| id.as_str()), Some("architect"));
        assert_ne!(one.session_id.as_str(), "s-arch");
    }
}

/// Its model loops in the architect, and it waits for a tool.
fn loops_in(talk: &mut Bench, turn: &str) {
    talk.input(json!({"text": "ask the architect", "turn_id": turn}));
    talk.assemble();
    talk.reply("", &[("c1", "arch", question()), ("c2", "look", json!({}))]);
}

/// A seat of the architect, where models are asked for all that it was sent.
fn at_work(session: &str, conversation: &str, sent: &[FollowUp]) -> Bench {
    let mut guest = Bench::new(json!({})).sits("architect", session, conversation);
    for one in sent {
        if guest.takes(one) {
            guest.assemble();
        }
    }
    guest
}

/// Cancels a turn; what is still under way at the seats after that, and how many of them have heard of it.
fn after_cancel(caller: &mut Bench, turn: &str, seats: &mut [Bench]) -> (Vec<String>, usize) {
    let before = caller.follow_ups.len();
    caller.guide(json!({ "cancel_turn": turn }));
    let (mut under_way, mut told) = (Vec::new(), 0);
    for seat in seats {
        let taken = caller.follow_ups[before..].iter().filter(|sent| seat.takes(sent)).count();
        told += usize::from(taken > 0);
        under_way.extend(seat.calls().into_iter().map(|call| call.key));
    }
    (under_way, told)
}

/// Two turns of one caller ask the architect at one seat, and another caller asks at a seat elsewhere.
#[test]
fn a_cancelled_turn_ends_the_guests_turn_that_it_began_at_one_of_its_seats_and_no_other() {
    let caller = || asked(json!({}), &json!({})).with_tool("look", json!({}));
    let (mut here, mut there) = (caller(), caller().sits("ada", "s-2", "c-2"));
    loops_in(&mut here, "t-1");
    here.seats = vec![seat("architect", "t-1.1.0.s")];
    loops_in(&mut here, "t-2");
    loops_in(&mut there, "t-3");
    let mut seats = [at_work("t-1.1.0.s", "c-1", &here.follow_ups), at_work("t-3.1.0.s", "c-2", &there.follow_ups)];
    let cut: Vec<String> = seats.iter().flat_map(|seat| seat.cuts(json!({"cancel_turn": "t-1.1.0.t"}))).collect();
    assert_eq!(cut, ["t-1.1.0.t/chat/1"], "only its model is cut short");
    let keys = |turns: &[&str]| turns.iter().map(|turn| format!("{turn}.1.0.t/chat/1")).collect::<Vec<_>>();
    assert_eq!(after_cancel(&mut here, "t-1", &mut seats), (keys(&["t-2", "t-3"]), 1));
    // The architect was there when this one asked, so it is told at its session and at its seat.
    assert_eq!(after_cancel(&mut here, "t-2", &mut seats), (keys(&["t-3"]), 1));
    assert_eq!(after_cancel(&mut there, "t-3", &mut seats), (Vec::new(), 1));
    let ends = seats.iter().flat_map(|seat| &seat.turns).map(|turn| (turn.turn_id.as_str(), turn.cancelled));
    assert_eq!(ends.collect::<Vec<_>>(), [("t-1.1.0.t", true), ("t-2.1.0.t", true), ("t-3.1.0.t", true)]);
}

/// Others may loop it in at the same time: whichever comes first makes its session, and the others' actions find it.
#[test]
fn what_is_for_a_guest_says_where_it_may_sit() {
    let mut talk = asked(json!({"depth": 2}), &json!({}));
    talk.say("ask the architect");
    talk.assemble();
    talk.reply("", &[("c1", "arch", question())]);
    talk.guide(json!({"cancel_turn": "in-1"}));
    let [create, input, cancel] = talk.follow_ups.as_slice() else { panic!("{:?}", talk.follow_ups) };
    assert_eq!([create.kind, input.kind, cancel.kind], [ActionType::Create, ActionType::Input, ActionType::Interrupt]);
    let architect = AgentId::parse("architect").unwrap();
    for one in [create, input, cancel] {
        assert_eq!((one.session_id.as_str(), one.agent_id.as_ref()), ("in-1.1.0.s", Some(&architect)));
        assert_eq!(one.seat.as_ref().map(|id| id.as_str()), Some("c-1"));
    }
    assert_eq!(input.payload.to_value()["caller"]["depth"], 3, "another session's settings do not tell");
}

#[test]
fn a_delegate_has_no_seat() {
    let mut talk = asked(json!({}), &json!({"invocation_mode": "delegate"}));
    talk.say("ask the architect");
    talk.assemble();
    talk.reply("", &[("c1", "arch", question())]);
    talk.guide(json!({"cancel_turn": "in-1"}));
    assert_eq!(talk.follow_ups.len(), 3, "a session, its input, and its end: {:?}", talk.follow_ups);
    assert!(talk.follow_ups.iter().all(|one| one.seat.is_none()), "{:?}", talk.follow_ups);
}

#[test]
fn who_is_looped_in_twice_by_one_reply_sits_there_once() {
    let mut talk = asked(json!({}), &json!({}));
    talk.say("ask twice");
    talk.assemble();
    talk.reply("", &[("c1", "arch", question()), ("c2", "arch", question())]);
    sits_once(&talk);
    assert_eq!(talk.talk().children().len(), 1);
}

#[test]
fn who_was_looped_in_by_a_turn_beside_this_one_sits_there_once() {
    let mut talk = asked(json!({}), &json!({}));
    talk.say("one");
    talk.say("two");
    talk.assemble();
    talk.assemble();
    talk.reply("", &[("c1", "arch", question())]);
    // The first turn ends; the model of the second was asked before all that.
    talk.reply("I asked.", &[]);
    talk.extract();
    talk.reply("", &[("c1", "arch", question())]);
    sits_once(&talk);
    // What is known of those who are there counts again once a model is asked anew: whoever was removed comes back.
    talk.reply("", &[("c2", "arch", question())]);
    let joined = talk.talk().joined;
    assert!(!joined.last().unwrap().was_there, "{joined:?}");
}

#[test]
fn who_was_looped_in_while_a_person_was_asked_sits_there_once() {
    let mut talk = asked(json!({}), &json!({"requires_approval": {}}));
    talk.say("ask twice");
    talk.assemble();
    talk.reply("", &[("c1", "arch", question()), ("c2", "arch", question())]);
    assert!(talk.follow_ups.is_empty(), "nobody is asked before the yes");
    for operation in ["in-1.1.0.ask", "in-1.1.1.ask"] {
        talk.result(operation, json!({"approved": true}));
    }
    sits_once(&talk);
}

#[test]
fn those_who_ask_one_another_come_to_an_end() {
    for (depth, refused) in [(7, 0), (8, 1)] {
        let mut talk = asked(json!({"depth": 1}), &json!({}));
        talk.seats = vec![seat("architect", "s-arch")];
        let caller = json!({"type": "agent", "agent_id": "architect", "turn_id": "t0", "depth": depth});
        talk.input(json!({"text": "and now you", "caller": caller}));
        talk.assemble();
        talk.reply("", &[("c1", "arch", question())]);
        assert_eq!(talk.turn(0).issues.tool_failures, refused);
        assert_eq!(talk.follow_ups.is_empty(), refused == 1);
    }
}

#[test]
fn seats_are_of_those_who_are_there_and_may_be_looped_in() {
    let tools = asked(json!({}), &json!({})).tools;
    let of = |id: &str, agent: &str, left_at_ms: Option<i64>| -> Participant {
        let who = json!({"participant_id": id, "type": "agent", "agent_id": agent, "session_id": format!("s-{id}"),
            "role": "responder", "joined_at_ms": 1, "left_at_ms": left_at_ms});
        serde_json::from_value(who).unwrap()
    };
    let here = [of("p1", "architect", Some(2)), of("p2", "architect", None), of("p3", "writer", None)];
    assert_eq!(seats(&here, &tools), [seat("architect", "s-p2")]);
    let schema = json!({"type": "object", "properties": {"invocation_mode": {"type": "string"}}});
    let delegates = asked(json!({}), &json!({"invocation_mode": "delegate", "input_schema": schema})).tools;
    assert!(seats(&here, &delegates).is_empty(), "a delegate works elsewhere");
}

#[test]
fn tools_are_told_the_projects_of_the_agent() {
    let mut talk = Bench::new(json!({})).with_tool("look", json!({}));
    talk.projects = vec![DefinitionId::parse("p-1").unwrap()];
    talk.say("find it");
    talk.assemble();
    talk.reply("", &[("c1", "look", json!({}))]);
    assert_eq!(talk.operations[0].request.to_value()["context"]["project_ids"], json!(["p-1"]));
}
