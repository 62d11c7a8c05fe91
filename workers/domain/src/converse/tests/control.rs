//! Guidance, cancelling, cutting, and the end of a session in the middle of things.

use schemas::action::ActionType;
use schemas::conversation::{LogKind, OperationState, TurnStatus};
use serde_json::json;

use super::bench::Bench;
use crate::effect::Outcome;

#[test]
fn guidance_is_told_to_the_active_turn_and_kept_when_there_is_none() {
    let mut talk = Bench::new(json!({})).with_tool("look", json!({}));
    talk.guide(json!("be kind"));
    assert_eq!(talk.talk().notes, ["be kind"]);
    talk.say("find");
    talk.assemble();
    assert!(talk.talk().notes.is_empty(), "the turn's context has it");
    talk.reply("", &[("c1", "look", json!({}))]);
    talk.guide(json!({"note": "look in the attic"}));
    talk.result("in-1.1.0", json!("nothing"));
    let last = talk.request().messages.pop().unwrap().plain_text();
    assert_eq!(last, "[Note] look in the attic", "after the results that the provider must see first");
}

#[test]
fn guidance_during_a_reply_is_followed_by_another() {
    let mut talk = Bench::new(json!({}));
    talk.say("tell me");
    talk.assemble();
    talk.guide(json!({"note": "in French"}));
    talk.reply("Hello.", &[]);
    assert_eq!(talk.turn(0).status, TurnStatus::Active);
    assert!(talk.request().messages.pop().unwrap().plain_text().contains("in French"));
    talk.reply("Bonjour.", &[]);
    assert_eq!(talk.turn(0).status, TurnStatus::Completed);
}

#[test]
fn what_a_cut_reply_had_said_is_kept() {
    let mut talk = Bench::new(json!({}));
    talk.say("count");
    talk.assemble();
    let mut cut = talk.blank();
    cut.cut = Some("one, two".to_owned());
    talk.answer("chat", cut.into());
    talk.guide(json!({"note": "stop counting"}));
    let texts: Vec<String> = talk.request().messages.iter().map(|message| message.plain_text()).collect();
    assert_eq!(texts[texts.len() - 2..], ["one, two", "[Note] stop counting"]);
    talk.reply("As you wish.", &[]);
    assert_eq!(talk.turn(0).moves, 2);
    assert_eq!(talk.said()[1].1, "one, two");
}

#[test]
fn guidance_that_the_model_was_shown_is_answered_once() {
    let mut talk = Bench::new(json!({}));
    talk.say("count");
    talk.assemble();
    talk.guide(json!({"note": "slowly"}));
    let mut cut = talk.blank();
    cut.cut = Some("one, two".to_owned());
    talk.answer("chat", cut.into());
    talk.guide(json!({"note": "stop counting"}));
    // Guidance goes first; then the model is asked.
    talk.begins_now();
    assert_eq!(talk.blank().heard, 2);
    talk.reply("As you wish.", &[]);
    assert_eq!((talk.turn(0).moves, talk.turn(0).status), (2, TurnStatus::Completed));
}

/// An older worker leaves no count of the notes that the log has.
#[test]
fn guidance_is_answered_in_a_turn_that_an_older_worker_began() {
    let mut talk = Bench::new(json!({})).with_tool("look", json!({}));
    talk.say("find");
    talk.assemble();
    talk.reply("", &[("c1", "look", json!({}))]);
    talk.guide(json!({"note": "in the attic"}));
    talk.result("in-1.1.0", json!("nothing"));
    let lane = talk.state["lanes"][0].as_object_mut().unwrap();
    assert!(lane.remove("told").is_some());
    talk.guide(json!({"note": "in French"}));
    talk.reply("It is not there.", &[]);
    assert_eq!(talk.turn(0).status, TurnStatus::Active, "the model was not shown the second note");
    talk.reply("Rien.", &[]);
    assert_eq!(talk.turn(0).status, TurnStatus::Completed);
}

#[test]
fn a_cancelled_turn_fails_and_takes_its_work_along() {
    let tool = json!({"target_type": "agent", "target_id": "developer"});
    let mut talk = Bench::new(json!({})).with_tool("dev", tool);
    talk.say("go");
    talk.assemble();
    talk.reply("", &[("c1", "dev", json!({"task": "x"}))]);
    talk.guide(json!({"cancel_turn": "in-1"}));
    let turn = talk.turn(0);
    assert_eq!((turn.status, turn.cancelled), (TurnStatus::Failed, true));
    assert_eq!(talk.operations[0].state, OperationState::Cancelled);
    assert_eq!(talk.follow_ups.last().unwrap().kind, ActionType::Destroy, "the called session ends as well");
    let late = talk.result("in-1.1.0", json!("late"));
    assert!(matches!(late, crate::moniker::Decision::Refuse { .. }));
}

#[test]
fn the_end_of_a_session_cancels_its_turns() {
    let mut talk = Bench::new(json!({}));
    talk.say("hello");
    talk.assemble();
    talk.farewell();
    assert_eq!((talk.turn(0).status, talk.turn(0).cancelled), (TurnStatus::Failed, true));
    assert_eq!(talk.events().last().unwrap(), "turn.failed");
}

#[test]
fn a_failed_context_fails_the_turn_with_its_cause() {
    let mut talk = Bench::new(json!({}));
    talk.say("hello");
    talk.answer("assemble", Outcome::Ok(json!({"not": "a context"})));
    assert_eq!(talk.turn(0).status, TurnStatus::Failed);
    assert!(talk.events().contains(&"context_assembly.failed".to_owned()));
    assert!(talk.records(LogKind::Move).is_empty() && talk.calls().is_empty());
}

#[test]
fn a_call_of_a_model_that_comes_to_nothing_fails_the_turn() {
    let mut talk = Bench::new(json!({}));
    talk.say("hello");
    talk.assemble();
    talk.answer("chat", talk.blank().into());
    let code = talk.turn(0).error.as_ref().map(|error| error.code.as_str());
    assert_eq!((talk.turn(0).status, code), (TurnStatus::Failed, Some("internal")));
}

#[test]
fn a_failed_extraction_never_fails_the_turn() {
    let mut talk = Bench::new(json!({}));
    talk.say("hello");
    talk.assemble();
    talk.reply("Hi.", &[]);
    let failure = crate::effect::EffectFailure {
        code: schemas::problem::Code::StepFailed,
        message: "no room".to_owned(),
        retriable: false,
        may_have_happened: false,
    };
    talk.answer("extract", Outcome::Failed(failure));
    assert_eq!(talk.turn(0).status, TurnStatus::Completed);
    assert!(talk.turn(0).issues.memory_extraction_failed);
}

#[test]
fn an_extraction_that_is_cut_off_is_an_issue_of_its_turn() {
    let ends: [fn(&mut Bench); 2] = [|talk| _ = talk.guide(json!({"cancel_turn": "in-1"})), Bench::farewell];
    for end in ends {
        let mut talk = Bench::new(json!({}));
        talk.say("hello");
        talk.assemble();
        talk.reply("Hi.", &[]);
        assert!(talk.turn(0).memory_extraction_run_id.is_none());
        end(&mut talk);
        let turn = talk.turn(0);
        assert_eq!((turn.status, turn.cancelled), (TurnStatus::Completed, false), "it was answered");
        assert!(turn.issues.memory_extraction_failed && turn.memory_extraction_run_id.is_some());
        assert_eq!(talk.events().last().unwrap(), "memory_extraction.failed");
    }
}

#[test]
fn an_answer_that_nobody_waits_for_changes_nothing() {
    let mut talk = Bench::new(json!({}));
    talk.say("hello");
    let stale = talk.calls().remove(0).key;
    talk.guide(json!({"cancel_turn": "in-1"}));
    let state = talk.state.clone();
    assert!(talk.calls().is_empty() && !stale.is_empty());
    assert_eq!(talk.state, state);
}

#[test]
fn who_was_looped_in_is_a_child_and_its_turn_is_cancelled_with_the_callers() {
    let tool = json!({"target_type": "agent", "target_id": "architect", "invocation_mode": "loop_in"});
    let dev = json!({"target_type": "agent", "target_id": "developer"});
    let mut talk = Bench::new(json!({})).with_tool("arch", tool).with_tool("dev", dev);
    talk.say("ask both");
    talk.assemble();
    talk.reply("", &[("c1", "arch", json!({"question": "how?"})), ("c2", "dev", json!({"task": "x"}))]);
    let children: Vec<String> = talk.talk().children().iter().map(ToString::to_string).collect();
    assert_eq!(children, ["in-1.1.1.s", "in-1.1.0.s"], "whoever works for it, however they were called");
    talk.guide(json!({"cancel_turn": "in-1"}));
    let [.., stop, cancel] = talk.follow_ups.as_slice() else { panic!("{:?}", talk.follow_ups) };
    assert_eq!((stop.kind, stop.session_id.as_str()), (ActionType::Destroy, "in-1.1.1.s"));
    assert_eq!((cancel.kind, cancel.session_id.as_str()), (ActionType::Interrupt, "in-1.1.0.s"));
    assert_eq!(cancel.payload.to_value()["guidance"], json!({"cancel_turn": "in-1.1.0.t"}));
    let children: Vec<String> = talk.talk().children().iter().map(ToString::to_string).collect();
    assert_eq!(children, ["in-1.1.0.s"], "who joined stays");
}

#[test]
fn a_turn_that_was_cancelled_before_its_input_ends_as_it_begins() {
    let mut talk = Bench::new(json!({}));
    talk.guide(json!({"cancel_turn": "t-7"}));
    talk.input(json!({"text": "hello", "turn_id": "t-7"}));
    let turn = talk.turn(0);
    assert_eq!((turn.status, turn.cancelled), (TurnStatus::Failed, true));
    assert!(talk.calls().is_empty() && talk.talk().cancelled.is_empty());
    talk.input(json!({"text": "hello", "turn_id": "t-8"}));
    assert_eq!(talk.turn(1).status, TurnStatus::Active);
}
