//! What bounds a turn, whatever its model does: pauses, many calls at once, ends that nobody knows, and contexts to
//! which nothing can be added.

use schemas::conversation::{LogKind, TurnPhase, TurnStatus};
use schemas::limits::TOOL_CALLS_MAX;
use schemas::problem::Code;
use serde_json::{Value, json};

use super::bench::Bench;
use super::contexts::{gathered, row, said};
use crate::chat::{Finish, NativeRequest, Part, ToolCall};
use crate::converse::{Assembly, Shown, assemble};

fn call(id: &str) -> Part {
    let (id, name) = (id.to_owned(), "look".to_owned());
    Part::ToolCall(ToolCall { id, name, input: json!({}), invalid: None, signature: None })
}

fn begun(rounds: u32) -> Bench {
    let mut talk = Bench::new(json!({})).with_tool("look", json!({}));
    talk.limits.max_rounds = rounds;
    talk.say("dig");
    talk.assemble();
    talk
}

#[test]
fn a_provider_that_always_pauses_is_asked_as_often_as_there_are_rounds() {
    let mut talk = begun(2);
    for round in 1..=2 {
        assert!(talk.with_parameters().tool_choice.is_none());
        talk.replies(vec![], Finish::Pause);
        assert_eq!((talk.turn(0).status, talk.talk().lanes[0].rounds), (TurnStatus::Active, round));
    }
    assert!(talk.with_parameters().tool_choice.is_some(), "the last request has no tools (K-14)");
    talk.replies(vec![], Finish::Pause);
    assert_eq!((talk.turn(0).status, talk.turn(0).moves), (TurnStatus::Completed, 3));
    assert!(talk.turn(0).issues.moves_exhausted && talk.said()[1].1.contains("Ask again"));
}

#[test]
fn pauses_and_calls_share_their_rounds_and_what_was_said_is_the_answer() {
    let mut talk = begun(2);
    talk.reply("", &[("c1", "look", json!({}))]);
    talk.result("in-1.1.0", json!("more"));
    talk.replies(vec![Part::text("So far,")], Finish::Pause);
    assert!(talk.with_parameters().tool_choice.is_some());
    talk.replies(vec![Part::text("so good."), call("c2")], Finish::Pause);
    assert_eq!((talk.turn(0).status, talk.operations.len()), (TurnStatus::Completed, 1));
    let said: Vec<String> = talk.said().into_iter().map(|(_, text)| text).collect();
    assert_eq!(said, ["dig", "So far,", "so good."]);
    assert!(talk.turn(0).issues.moves_exhausted);
}

#[test]
fn a_reply_that_pauses_and_calls_is_one_round() {
    let mut talk = begun(2);
    talk.replies(vec![call("c1")], Finish::Pause);
    assert_eq!((talk.turn(0).phase, talk.talk().lanes[0].rounds), (TurnPhase::WaitingTool, 1));
}

#[test]
fn of_one_reply_so_many_calls_are_carried_out() {
    let mut talk = begun(20);
    let parts = (0..=TOOL_CALLS_MAX).map(|n| call(&format!("c{n}"))).collect();
    talk.replies(parts, Finish::ToolUse);
    assert_eq!((talk.operations.len(), talk.turn(0).phase), (TOOL_CALLS_MAX, TurnPhase::WaitingTool));
    let refused: Vec<Value> = talk.records(LogKind::ToolResult).iter().map(|record| record.body.to_value()).collect();
    assert_eq!((refused.len(), talk.turn(0).issues.tool_failures), (1, 1));
    let last = format!("c{TOOL_CALLS_MAX}");
    assert_eq!(refused[0]["tool_call_id"], json!(last));
    assert_eq!(refused[0]["error"]["code"], json!("PERMISSION_DENIED"));
    for n in 0..TOOL_CALLS_MAX {
        talk.result(&format!("in-1.1.{n}"), json!("found"));
    }
    let results = talk.request().messages.pop().unwrap().content;
    assert_eq!(results.len(), TOOL_CALLS_MAX + 1, "each call has its result (K-15)");
    assert!(matches!(results.last(), Some(Part::ToolResult { is_error: true, .. })));
}

#[test]
fn k_36_an_answer_that_ends_for_a_reason_nobody_knows_is_an_issue() {
    let mut talk = begun(20);
    talk.replies(vec![Part::text("once upon a ti")], Finish::Other);
    assert_eq!(talk.turn(0).status, TurnStatus::Completed);
    assert!(talk.turn(0).issues.response_cut);
    let mut talk = begun(20);
    talk.replies(vec![Part::text("I look."), call("c1")], Finish::Other);
    talk.result("in-1.1.0", json!("more"));
    talk.reply("Here.", &[]);
    assert!(talk.turn(0).issues.is_empty(), "calls that came whole are carried out");
}

/// A context in a provider's own shape.
fn native() -> Assembly {
    let mut assembly = assemble(&gathered(vec![said(1, None)], 1));
    let body = json!({"messages": [{"role": "user", "content": "hello"}]});
    assembly.request.native = Some(NativeRequest { provider: "openai".to_owned(), body });
    assembly
}

#[test]
fn k_31_a_context_in_a_providers_own_shape_is_good_for_one_reply_without_tools() {
    let mut assembly = native();
    let moved = json!({"move": 1, "parts": [{"type": "text", "text": "hm"}], "finish": "pause"});
    let rows = [row(2, LogKind::Move, Some("ada"), moved), row(3, LogKind::Note, None, json!({"text": "in French"}))];
    assert_eq!(Shown::of(&assembly, None, &[]).problem(), None);
    for rows in [&rows[..1], &rows[1..]] {
        let failure = Shown::of(&assembly, None, rows).problem().expect("nothing can be added");
        assert_eq!((failure.code, failure.provider.as_str()), (Code::InvalidRequest, "openai"));
        assert!(failure.message.contains("what has come since"), "{}", failure.message);
    }
    assembly.tools = crate::tool::builtins();
    let failure = Shown::of(&assembly, None, &[]).problem().expect("results cannot be added");
    assert!(failure.message.contains("results of its tools"), "{}", failure.message);
    assembly.request.native = None;
    assert_eq!(Shown::of(&assembly, None, &rows).problem(), None, "messages can be added to");
}
