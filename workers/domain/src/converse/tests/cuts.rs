//! What urgent guidance ends before its time.

use schemas::conversation::{LogKind, TurnStatus};
use serde_json::json;

use super::bench::Bench;
use super::compactions;
use crate::chat::{Finish, Part, ProviderCallRecord, ToolCall};
use crate::converse::{CONVERSE, Compacted};
use crate::effect::Outcome;
use crate::moniker::Moniker;

fn pay() -> ToolCall {
    ToolCall { id: "c1".to_owned(), name: "pay".to_owned(), input: json!({}), invalid: None, signature: None }
}

/// A call of a model for the turn `in-1`.
fn billed(id: &str, tokens: u64) -> ProviderCallRecord {
    let record = json!({"id": id, "conversation_id": "c-1", "turn_id": "in-1", "provider": "p", "model": "m",
        "operation": "chat", "started_at_ms": 0,
        "usage": {"input_tokens": tokens, "output_tokens": 0, "total_tokens": tokens}});
    serde_json::from_value(record).unwrap()
}

#[test]
fn the_end_of_a_turn_cuts_its_own_call_and_other_guidance_all_replies() {
    let mut talk = Bench::new(json!({}));
    for text in ["one", "two"] {
        talk.say(text);
        talk.assemble();
    }
    talk.say("three");
    assert_eq!(talk.cuts(json!({"cancel_turn": "in-1"})), ["in-1/chat/1"]);
    for guidance in [json!({"note": "stop"}), json!("stop"), json!({"cancel_turn": 1})] {
        assert_eq!(talk.cuts(guidance), ["in-1/chat/1", "in-2/chat/1"], "a context has nothing to say");
    }
    assert_eq!(talk.cut_at_the_end(), ["in-1/chat/1", "in-2/chat/1"]);
    for other in ["in-3", "in-4", ""] {
        assert!(talk.cuts(json!({ "cancel_turn": other })).is_empty(), "{other}");
    }
    talk.reply("Well.", &[]);
    assert!(talk.cuts(json!({"cancel_turn": "in-1"})).is_empty(), "its memories are extracted");
    talk.state = json!({"lanes": "damaged"});
    assert!(talk.cuts(json!("stop")).is_empty());
}

/// A call that is only dropped is paid for as well, and nobody would know.
#[test]
fn the_end_of_a_turn_cuts_its_call_however_urgent_it_is() {
    for (guidance, ends) in [(json!({"cancel_turn": "in-1"}), true), (json!({"note": "stop"}), false)] {
        assert_eq!(CONVERSE.ends_work(&guidance), ends, "{guidance}");
    }
}

/// It was accepted that the session ends: what the model calls for would be done after that.
#[test]
fn a_reply_that_comes_while_its_session_ends_is_recorded_and_calls_for_nothing() {
    for (parts, finish, operations, status) in [
        (vec![Part::text("I pay."), Part::ToolCall(pay())], Finish::ToolUse, 1, TurnStatus::Active),
        (vec![Part::text("Done.")], Finish::Stop, 0, TurnStatus::Completed),
    ] {
        for leaves in [true, false] {
            let mut talk = Bench::new(json!({})).with_tool("pay", json!({}));
            talk.say("pay");
            talk.assemble();
            let mut outcome: Outcome = talk.heard(parts.clone(), finish).into();
            if leaves {
                outcome.leave_uncalled();
            }
            talk.answer("chat", outcome);
            assert_eq!(talk.operations.len(), if leaves { 0 } else { operations });
            assert_eq!((talk.turn(0).moves, talk.turn(0).status), (1, status), "what ends the turn ends it");
        }
    }
}

/// Its turn has no rounds left, so it ends with this reply, as it would without the stop.
#[test]
fn the_last_reply_of_a_turn_that_comes_while_its_session_ends_ends_it_once_and_asks_for_nothing() {
    let look = Part::ToolCall(ToolCall { name: "look".to_owned(), ..pay() });
    for said in [vec![Part::text("Not here."), look.clone()], vec![look]] {
        let mut talk = Bench::new(json!({})).with_tool("look", json!({}));
        talk.limits.max_rounds = 1;
        talk.limits.budgets.max_tokens_per_turn = Some(100);
        talk.say("dig");
        talk.assemble();
        talk.reply("", &[("c1", "look", json!({}))]);
        talk.result("in-1.1.0", json!("found"));
        let mut reply = talk.heard(said, Finish::ToolUse);
        reply.record = Some(billed("in-1.2", 150));
        let mut outcome: Outcome = reply.into();
        outcome.leave_uncalled();
        talk.answer("chat", outcome);
        let turn = talk.turn(0);
        assert_eq!((turn.moves, turn.usage.input_tokens, turn.status), (2, 150, TurnStatus::Completed));
        assert_eq!((talk.records(LogKind::Move).len(), talk.records(LogKind::ProviderCall).len()), (2, 1));
        assert_eq!(talk.said().len(), 2, "what it says, or that it has no answer: {:?}", talk.said());
        assert_eq!((talk.operations.len(), talk.talk().asked), (1, 0), "nothing new: {:?}", talk.operations);
        let calls: Vec<&str> = talk.calls().iter().map(|call| call.effect.kind()).collect();
        assert_eq!((calls, talk.cut_at_the_end()), (vec!["extract"], Vec::new()), "the stop waits for nothing more");
        talk.farewell();
        assert_eq!((talk.turn(0).status, talk.turn(0).cancelled), (TurnStatus::Completed, false));
        let ends: Vec<String> = talk.events().into_iter().filter(|name| name.starts_with("turn.")).collect();
        assert_eq!(ends, ["turn.completed"]);
        assert!(talk.follow_ups.is_empty(), "{:?}", talk.follow_ups);
    }
}

#[test]
fn a_compaction_is_cut_with_its_turn_alone_and_is_paid_for() {
    let mut talk = compactions::talk(5, 400, 100_000);
    talk.say("go on");
    talk.assemble();
    assert!(talk.is_over_budget());
    assert!(talk.cuts(json!({"note": "in short"})).is_empty());
    assert_eq!(talk.cuts(json!({"cancel_turn": "in-1"})), ["in-1/compact/1"]);
    assert_eq!(talk.cut_at_the_end(), ["in-1/compact/1"]);
    let cut = Compacted { cut: true, record: Some(billed("in-1.compact.1", 7)), ..Compacted::default() };
    talk.answer("compact", cut.into());
    assert_eq!((talk.token(), talk.turn(0).usage.input_tokens), ("t/in-1/compact/2", 7), "under an id of its own");
    assert_eq!(talk.records(LogKind::ProviderCall).len(), 1);
    assert!(talk.events().iter().all(|name| name != "context_compaction.failed"), "{:?}", talk.events());
    talk.guide(json!({"cancel_turn": "in-1"}));
    assert_eq!((talk.turn(0).status, talk.turn(0).cancelled), (TurnStatus::Failed, true));
    assert!(talk.calls().is_empty());
}
