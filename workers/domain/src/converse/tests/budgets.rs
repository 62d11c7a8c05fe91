//! Budgets of a session in which several turns are at work.

use schemas::conversation::{OperationKind, TurnPhase, TurnStatus};
use serde_json::json;

use super::bench::Bench;
use super::calls::spend;
use crate::converse::Next;
use crate::effect::{Effect, TalkWork};

/// Two turns whose models are being asked, in a session that may use 100 tokens.
fn two() -> Bench {
    let mut talk = Bench::new(json!({})).with_tool("look", json!({}));
    talk.limits.budgets.max_tokens_per_session = Some(100);
    for text in ["dig", "and here?"] {
        talk.say(text);
        talk.assemble();
    }
    assert_eq!(keys(&talk), ["in-1/chat/1", "in-2/chat/1"]);
    talk
}

fn keys(talk: &Bench) -> Vec<String> {
    talk.calls().into_iter().map(|call| call.key).collect()
}

fn questions(talk: &Bench) -> usize {
    talk.operations.iter().filter(|one| one.kind == OperationKind::Approval).count()
}

#[test]
fn a_model_that_is_being_asked_is_heard_when_another_turn_uses_the_budget_up() {
    let mut talk = two();
    spend(&mut talk, 150);
    assert_eq!((keys(&talk), questions(&talk)), (vec!["in-2/chat/1".to_owned()], 0), "it is paid for in any case");
    talk.reply("Here.", &[]);
    assert_eq!((talk.turn(1).status, questions(&talk)), (TurnStatus::Completed, 0));
    talk.extract();
    talk.result("in-1.1.0", json!("found"));
    assert_eq!((talk.turn(0).phase, questions(&talk)), (TurnPhase::WaitingApproval, 1), "the next one is new");
    assert!(talk.calls().is_empty());
}

#[test]
fn what_was_heard_over_the_budget_counts_and_the_next_request_asks() {
    let mut talk = two();
    spend(&mut talk, 150);
    spend(&mut talk, 30);
    assert_eq!((talk.talk().used.input_tokens, questions(&talk)), (180, 0));
    talk.result("in-2.1.0", json!("found"));
    assert_eq!((talk.turn(1).phase, questions(&talk)), (TurnPhase::WaitingApproval, 1));
    talk.result("in-1.1.0", json!("found"));
    assert_eq!((talk.turn(0).phase, questions(&talk)), (TurnPhase::WaitingApproval, 1), "both wait for one answer");
}

#[test]
fn a_call_that_has_not_begun_finds_out_for_itself() {
    let mut talk = two();
    spend(&mut talk, 150);
    let Effect::Talk(call) = talk.calls().remove(0).effect else { panic!("talk") };
    let TalkWork::Chat { checks, .. } = call.what else { panic!("a reply") };
    let over = checks.over(0, Next::default(), None).expect("the budget is used up");
    assert_eq!((over.used, over.limit), (150.0, 100.0));
    let mut reply = talk.blank();
    reply.over = Some(over);
    talk.answer("chat", reply.into());
    assert_eq!((talk.turn(1).phase, questions(&talk)), (TurnPhase::WaitingApproval, 1));
}
