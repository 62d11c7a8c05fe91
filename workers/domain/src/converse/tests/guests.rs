//! What agents cost that are looped in: whoever called them is told, and leaves them what its budgets have left.

use schemas::action::ActionType;
use schemas::conversation::{LogKind, TurnPhase, TurnStatus};
use serde_json::{Value, json};

use super::bench::Bench;
use super::calls::spend;
use crate::moniker::FollowUp;

/// A session that may loop in the architect.
fn with_guests(config: Value) -> Bench {
    let arch = json!({"target_type": "agent", "target_id": "architect", "invocation_mode": "loop_in"});
    Bench::new(config).with_tool("look", json!({})).with_tool("arch", arch)
}

/// Its model loops in the architect.
fn call(talk: &mut Bench) {
    talk.reply("", &[("c1", "arch", json!({"question": "how?"}))]);
}

/// What the turn `op.t` of an agent begins with that a turn `t-0` called.
fn called(more: (&str, Value)) -> Value {
    let caller = json!({"type": "agent", "agent_id": "boss", "turn_id": "t-0", "depth": 1});
    let mut input = json!({"text": "how?", "turn_id": "op.t", "caller": caller});
    input[more.0] = more.1;
    input
}

fn spent_to() -> Value {
    json!({"session_id": "s-0", "operation_id": "op", "turn_id": "t-0"})
}

/// A guest whose model is to be asked.
fn guest(spent_to: Value) -> Bench {
    let mut guest = with_guests(json!({}));
    guest.input(called(("spent_to", spent_to)));
    guest.assemble();
    guest
}

/// A guest that has used 150 tokens and waits for a tool.
fn guest_at_work() -> Bench {
    let mut guest = guest(spent_to());
    spend(&mut guest, 150);
    guest
}

/// All that was told of what was spent, with the id and the session.
fn told(talk: &Bench) -> Vec<(&str, &str, Value)> {
    let told = talk.follow_ups.iter().filter(|one| one.kind == ActionType::Interrupt);
    told.map(|one| (one.action_id.as_str(), one.session_id.as_str(), guidance(one)["spent"].clone())).collect()
}

fn guidance(told: &FollowUp) -> Value {
    told.payload.to_value()["guidance"].clone()
}

/// Where it counts, by the input of the last agent that was looped in.
fn counts_at(talk: &Bench) -> Value {
    talk.follow_ups.last().expect("an input").payload.to_value()["spent_to"].clone()
}

/// Guidance that tells what a guest has used.
fn spent(to: &Value) -> Value {
    let usage = json!({"input_tokens": 7, "output_tokens": 3, "cost": 0.5});
    json!({"spent": {"operation_id": to["operation_id"], "usage": usage, "to": to}})
}

#[test]
fn a_guest_takes_along_where_it_counts_and_what_is_left() {
    let mut talk = with_guests(json!({}));
    talk.limits.budgets.max_tokens_per_turn = Some(100);
    talk.limits.budgets.max_cost_per_session = Some(2.0);
    talk.say("dig");
    talk.assemble();
    spend(&mut talk, 30);
    talk.result("in-1.1.0", json!("found"));
    call(&mut talk);
    let to = json!({"session_id": "s-1", "operation_id": "in-1.2.0", "turn_id": "in-1",
        "tokens_left": 70, "cost_nanos_left": 2_000_000_000_u64});
    assert_eq!(counts_at(&talk), to);
    let config = talk.follow_ups[0].payload.to_value()["config"].clone();
    assert_eq!(config, json!({"single_turn": false, "depth": 1}), "its other turns are no matter of this one");
}

#[test]
fn a_guest_may_use_what_its_caller_has_left_and_asks_beyond() {
    let mut to = spent_to();
    (to["tokens_left"], to["cost_nanos_left"]) = (json!(100), json!(2_000_000_000_u64));
    let mut talk = guest(to.clone());
    let bounds = |talk: &Bench| {
        let budgets = talk.talk().lanes[0].limits.clone().expect("limits").budgets;
        (budgets.max_tokens_per_turn, budgets.max_cost_per_turn, budgets.max_tokens_per_session)
    };
    assert_eq!(bounds(&talk), (Some(100), Some(2.0), None));
    spend(&mut talk, 150);
    talk.result("op.t.1.0", json!("found"));
    assert_eq!(talk.turn(0).phase, TurnPhase::WaitingApproval);
    let mut own = with_guests(json!({}));
    own.limits.budgets.max_tokens_per_turn = Some(50);
    own.input(called(("spent_to", to)));
    own.assemble();
    assert_eq!(bounds(&own).0, Some(50), "its own is smaller");
}

#[test]
fn a_guest_tells_once_what_it_has_used_however_it_ends() {
    let mut done = guest_at_work();
    done.result("op.t.1.0", json!("found"));
    done.reply("Like this.", &[]);
    done.extract();
    let mut cancelled = guest_at_work();
    cancelled.guide(json!({"cancel_turn": "op.t"}));
    let mut ended = guest_at_work();
    ended.farewell();
    for talk in [done, cancelled, ended] {
        let told = told(&talk);
        let [(id, session, spent)] = told.as_slice() else { panic!("{told:?}") };
        assert_eq!((*id, *session), ("op.spent", "s-0"));
        assert_eq!((&spent["usage"]["input_tokens"], &spent["to"]), (&json!(150), &spent_to()));
    }
    let mut cheap = guest(spent_to());
    cheap.reply("Like this.", &[]);
    assert!(cheap.follow_ups.is_empty(), "nobody is woken for nothing");
}

#[test]
fn what_a_guest_has_used_adds_up_to_its_caller() {
    let mut talk = with_guests(json!({}));
    talk.say("ask the architect");
    talk.assemble();
    call(&mut talk);
    let mut guest = with_guests(json!({}));
    guest.input(talk.follow_ups[1].payload.to_value());
    guest.assemble();
    spend(&mut guest, 150);
    guest.guide(json!({"cancel_turn": "in-1.1.0.t"}));
    talk.guide(guidance(guest.follow_ups.last().expect("it tells")));
    assert_eq!((talk.turn(0).usage.input_tokens, talk.talk().used.input_tokens), (150, 150));
    assert!(talk.records(LogKind::Note).is_empty() && talk.talk().notes.is_empty(), "no model is told");
    // A guest goes on when the turn that called it is over.
    talk.reply("I asked.", &[]);
    talk.extract();
    talk.guide(spent(&counts_at(&talk)));
    assert_eq!((talk.turn(0).usage.input_tokens, talk.talk().used.input_tokens), (150, 157));
    assert!(told(&talk).is_empty(), "nobody called this one");
}

#[test]
fn a_budget_that_a_guest_has_used_up_asks_a_person() {
    let mut talk = with_guests(json!({}));
    talk.limits.budgets.max_tokens_per_session = Some(10);
    talk.say("ask the architect");
    talk.assemble();
    call(&mut talk);
    talk.reply("I asked.", &[]);
    talk.extract();
    talk.guide(spent(&counts_at(&talk)));
    talk.say("and now?");
    talk.assemble();
    assert_eq!(talk.turn(1).phase, TurnPhase::WaitingApproval);
}

#[test]
fn what_the_guest_of_a_guest_has_used_is_told_further_once_nobody_else_tells_it() {
    let mut talk = guest(spent_to());
    call(&mut talk);
    let to = counts_at(&talk);
    assert_eq!((&to["turn_id"], &to["then"]), (&json!("op.t"), &spent_to()));
    talk.guide(spent(&to));
    assert_eq!(talk.turn(0).usage.input_tokens, 7);
    assert!(told(&talk).is_empty(), "it is among what the turn itself tells");
    talk.reply("I asked.", &[]);
    assert_eq!((talk.turn(0).status, told(&talk)[0].0), (TurnStatus::Completed, "op.spent"));
    // While memories are extracted, too: the turn has told by then.
    talk.guide(spent(&to));
    let told = told(&talk);
    let [_, (id, session, spent)] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!((*id, *session), ("op.t.1.0.spent.op", "s-0"));
    assert_eq!((&spent["usage"]["input_tokens"], &spent["to"]), (&json!(7), &spent_to()));
}

#[test]
fn what_the_guest_of_a_delegate_has_used_is_told_to_who_called_the_delegate() {
    let mut child = with_guests(json!({"single_turn": true, "depth": 1}));
    child.input(called(("reply_to", json!({"session_id": "s-0", "operation_id": "op"}))));
    child.assemble();
    call(&mut child);
    assert_eq!(counts_at(&child), json!({"session_id": "s-0", "operation_id": "op.t.1.0", "turn_id": "t-0"}));
}
