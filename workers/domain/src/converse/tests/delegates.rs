//! What delegates cost their callers, how much they may use, and how long they may take.

use schemas::action::ActionType;
use schemas::conversation::{LogKind, TurnPhase, TurnStatus};
use schemas::definition::PersonaBody;
use serde_json::{Value, json};

use super::bench::Bench;
use super::calls::spend;
use crate::chat::{Finish, Part};
use crate::converse::Settings;
use crate::effect::Outcome;
use crate::moniker::Decision;

/// A caller that has asked `dev` and waits for it.
fn calling(change: Value) -> Bench {
    let mut tool = json!({"target_type": "agent", "target_id": "developer"});
    for (key, value) in change.as_object().unwrap() {
        tool[key] = value.clone();
    }
    let mut talk = Bench::new(json!({})).with_tool("dev", tool);
    talk.say("go");
    talk.assemble();
    talk.reply("", &[("c1", "dev", json!({"task": "x"}))]);
    talk
}

/// A delegate that has used 150 tokens and waits for a tool.
fn delegate() -> Bench {
    let mut child = Bench::new(json!({"single_turn": true, "depth": 1})).with_tool("look", json!({}));
    child.input(json!({"text": "write", "turn_id": "op.t", "reply_to": {"session_id": "s-0", "operation_id": "op"}}));
    child.assemble();
    spend(&mut child, 150);
    child
}

fn used() -> Value {
    json!({"input_tokens": 7, "output_tokens": 3, "cost": 0.5})
}

fn last_payload(talk: &Bench) -> Value {
    talk.follow_ups.last().expect("a follow-up").payload.to_value()
}

#[test]
fn a_delegate_tells_what_it_used_however_it_ends() {
    let mut cancelled = delegate();
    cancelled.guide(json!({"cancel_turn": "op.t"}));
    let told = last_payload(&cancelled);
    assert_eq!((&told["error"]["code"], &told["usage"]["input_tokens"]), (&json!("EXECUTION_FAILED"), &json!(150)));
    let mut declined = delegate();
    declined.result("op.t.1.0", json!("found"));
    declined.replies(vec![Part::text("I would rather not.")], Finish::Refusal);
    let told = last_payload(&declined);
    assert_eq!((&told["error"]["code"], &told["usage"]["input_tokens"]), (&json!("AGENT_DECLINED"), &json!(150)));
    let mut done = delegate();
    done.result("op.t.1.0", json!("found"));
    done.reply("Written.", &[]);
    assert_eq!(last_payload(&done)["result"]["usage"]["input_tokens"], 150);
}

#[test]
fn what_a_failed_delegate_used_adds_up_to_its_caller() {
    for code in ["EXECUTION_FAILED", "AGENT_DECLINED"] {
        let mut talk = calling(json!({}));
        let error = json!({"code": code, "message": "no", "retriable": false});
        talk.ended(json!({"operation_id": "in-1.1.0", "error": error, "usage": used()}));
        assert_eq!((talk.turn(0).usage.input_tokens, talk.turn(0).usage.cost), (7, 0.5), "{code}");
        assert_eq!(talk.talk().used.output_tokens, 3, "{code}");
        talk.reply("It did not work.", &[]);
        assert_eq!(talk.turn(0).status, TurnStatus::Completed);
    }
}

#[test]
fn who_ends_before_its_turn_tells_what_it_used() {
    let mut child = delegate();
    child.farewell();
    let [.., answer, spent] = child.follow_ups.as_slice() else { panic!("{:?}", child.follow_ups) };
    assert_eq!((answer.kind, spent.kind), (ActionType::ToolResult, ActionType::Interrupt));
    assert_eq!((spent.session_id.as_str(), spent.action_id.as_str()), ("s-0", "op.spent"));
    let told = spent.payload.to_value()["guidance"]["spent"].clone();
    assert_eq!((&told["operation_id"], &told["usage"]["input_tokens"]), (&json!("op"), &json!(150)));
}

#[test]
fn what_a_stopped_delegate_used_counts_once() {
    let mut talk = calling(json!({}));
    let spent = json!({"spent": {"operation_id": "in-1.1.0", "usage": used()}});
    talk.guide(spent.clone());
    assert_eq!(talk.talk().used.input_tokens, 0, "its answer is still to come");
    talk.guide(json!({"cancel_turn": "in-1"}));
    talk.guide(spent.clone());
    talk.guide(spent);
    assert_eq!(talk.talk().used.input_tokens, 7);
    assert!(talk.talk().notes.is_empty() && talk.talk().stopped.is_empty(), "no model is told");
}

#[test]
fn whatever_somebody_says_was_used_the_state_can_be_read_again() {
    let mut talk = calling(json!({}));
    let usage = json!({"input_tokens": u64::MAX, "output_tokens": 0, "cost": f64::MAX});
    talk.result("in-1.1.0", json!({"text": "done", "usage": usage}));
    let used = talk.talk().used;
    assert!(used.input_tokens < u64::MAX && used.cost < 1e9, "{used:?}");
}

#[test]
fn an_answer_that_comes_after_the_end_of_its_turn_counts_once() {
    let mut talk = calling(json!({}));
    talk.guide(json!({"cancel_turn": "in-1"}));
    let answer = json!({"text": "done", "usage": used()});
    assert!(matches!(talk.result("in-1.1.0", answer.clone()), Decision::Emit { took_arrival: true, .. }));
    assert_eq!(talk.talk().used.input_tokens, 7);
    assert!(matches!(talk.result("in-1.1.0", answer), Decision::Refuse { .. }));
}

#[test]
fn a_delegate_has_the_time_of_its_tool() {
    assert_eq!(calling(json!({})).operations[0].timeout_ms, 86_400_000);
    assert_eq!(calling(json!({"retry": {"timeout_ms": 5_000}})).operations[0].timeout_ms, 5_000);
    let mut gated = calling(json!({"retry": {"timeout_ms": 5_000}, "requires_approval": {}}));
    gated.result("in-1.1.0.ask", json!({"approved": true}));
    assert_eq!(gated.operations[1].timeout_ms, 5_000, "from the yes on");
}

#[test]
fn a_delegate_whose_time_is_over_is_told_to_stop_and_the_turn_goes_on() {
    let mut talk = calling(json!({}));
    talk.failure("in-1.1.0", json!({"code": "TIMEOUT", "message": "late", "retriable": false}));
    assert_eq!((talk.turn(0).phase, talk.turn(0).issues.tool_failures), (TurnPhase::Thinking, 1));
    let stop = talk.follow_ups.last().unwrap();
    assert_eq!((stop.kind, stop.session_id.as_str()), (ActionType::Destroy, "in-1.1.0.s"));
    assert!(format!("{:?}", talk.request().messages.last()).contains("TIMEOUT"));
    talk.guide(json!({"spent": {"operation_id": "in-1.1.0", "usage": used()}}));
    assert_eq!(talk.turn(0).usage.input_tokens, 7, "what it had used by then");
    talk.reply("It took too long.", &[]);
    assert_eq!(talk.turn(0).status, TurnStatus::Completed);
    // Another end of it stops nobody: the session has ended by itself, and notes what it remembers.
    let mut failed = calling(json!({}));
    failed.failure("in-1.1.0", json!({"code": "EXECUTION_FAILED", "message": "no"}));
    assert!(failed.follow_ups.iter().all(|one| one.kind != ActionType::Destroy));
}

#[test]
fn a_delegate_may_use_what_its_caller_has_left() {
    let dev = json!({"target_type": "agent", "target_id": "developer"});
    let mut talk = Bench::new(json!({})).with_tool("look", json!({})).with_tool("dev", dev);
    talk.limits.budgets.max_tokens_per_turn = Some(100);
    talk.limits.budgets.max_tokens_per_session = Some(1_000);
    talk.limits.budgets.max_cost_per_session = Some(2.0);
    talk.say("dig");
    talk.assemble();
    spend(&mut talk, 30);
    talk.result("in-1.1.0", json!("found"));
    talk.reply("", &[("c2", "dev", json!({"task": "x"}))]);
    let spec = &talk.follow_ups[0].session.as_ref().unwrap().0.spec;
    let config = spec.config.to_value();
    assert_eq!((&config["tokens_left"], &config["cost_nanos_left"]), (&json!(70), &json!(2_000_000_000_u64)));
    assert_eq!(talk.follow_ups[0].payload.to_value()["config"], config);
    let budgets = |own: Value| {
        let constraints = json!({ "budgets": own });
        let persona = json!({"system_prompt": "p", "model_profile_id": "default", "constraints": constraints});
        let mut persona: PersonaBody = serde_json::from_value(persona).unwrap();
        Settings::of(spec).apply_to(&mut persona);
        persona.constraints.budgets.unwrap()
    };
    let bound = budgets(json!({"max_tokens_per_turn": 10}));
    assert_eq!((bound.max_tokens_per_session, bound.max_cost_per_session), (Some(70), Some(2.0)));
    assert_eq!(bound.max_tokens_per_turn, Some(10));
    assert_eq!(budgets(json!({"max_tokens_per_session": 50})).max_tokens_per_session, Some(50), "its own is smaller");
}

#[test]
fn a_caller_without_budgets_leaves_its_delegate_unbound() {
    let talk = calling(json!({}));
    let config = talk.follow_ups[0].payload.to_value()["config"].clone();
    assert_eq!(config, json!({"single_turn": true, "depth": 1}));
}

/// Outcomes of calls that have completed, as their events tell them.
fn completed(talk: &Bench) -> Vec<Value> {
    let events = talk.records(LogKind::Event).into_iter().map(|record| record.body.to_value());
    events.filter(|event| event["type"] == "agent_call_completed").map(|event| event["outcome"].clone()).collect()
}

#[test]
fn a_call_that_has_started_completes_once_however_it_ends() {
    let begun = || {
        let mut child = Bench::new(json!({"single_turn": true, "depth": 1}));
        let caller = json!({"type": "agent", "agent_id": "ada", "turn_id": "in-1"});
        child.input(json!({"text": "write", "turn_id": "op.t", "caller": caller}));
        child.assemble();
        let started = child.events().iter().filter(|event| *event == "agent_call_started").count();
        assert_eq!((started, completed(&child)), (1, vec![]));
        child
    };
    let mut done = begun();
    done.reply("Written.", &[]);
    done.answer("extract", Outcome::Ok(json!("no matter what")));
    assert_eq!(completed(&done), ["completed"]);
    let mut declined = begun();
    declined.replies(vec![Part::text("I would rather not.")], Finish::Refusal);
    assert_eq!(completed(&declined), ["declined"]);
    let mut failed = begun();
    failed.answer("chat", Outcome::Ok(json!("no reply")));
    assert_eq!((failed.turn(0).status, completed(&failed)), (TurnStatus::Failed, vec![json!("failed")]));
    let mut cancelled = begun();
    cancelled.guide(json!({"cancel_turn": "op.t"}));
    assert_eq!(completed(&cancelled), ["cancelled"]);
    let mut ended = begun();
    ended.farewell();
    assert_eq!(completed(&ended), ["cancelled"]);
}
