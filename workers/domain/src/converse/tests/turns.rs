//! Whole turns: with and without tools, one after the other and side by side.

use std::collections::BTreeSet;

use schemas::conversation::{LogKind, TurnPhase, TurnStatus};
use serde_json::{Value, json};

use super::bench::Bench;
use crate::chat::{Finish, Part, Role};
use crate::moniker::Decision;

/// The names of SPEC W-DEC-02.
const NAMES: [&str; 13] = [
    "START_TURN",
    "COMPLETE_TURN",
    "FAIL_TURN",
    "APPEND_MESSAGE",
    "DISPATCH_TASK",
    "DISPATCH_WORKFLOW",
    "DISPATCH_AGENT",
    "TRACK_ASYNC_OPERATION",
    "ASYNC_OPERATION_COMPLETED",
    "MARK_WAITING",
    "RESUME_FROM_TOOL",
    "WRITE_MEMORY",
    "UPDATE_MEMORY",
];

/// That the same inputs lead to the same decisions, the bench checks at every step of every test.
#[test]
fn s_136_decisions_have_the_names_of_the_seed() {
    let slow = json!({"target_type": "task", "target_id": "slow", "async": true});
    let developer = json!({"target_type": "agent", "target_id": "developer"});
    let mut talk = Bench::new(json!({})).with_tool("slow", slow).with_tool("dev", developer);
    talk.tools.extend(crate::tool::builtins());
    talk.say("go");
    talk.assemble();
    let named = json!({"content": "The sea is blue.", "label": "sea"});
    let new = json!({"content": "The sky is blue."});
    talk.reply("", &[("c1", "slow", json!({})), ("c2", "dev", json!({"task": "x"})), ("c3", "memory_write", named)]);
    assert!(!talk.names.iter().any(|name| name == "WRITE_MEMORY"), "one that is named may be there: {:?}", talk.names);
    talk.result("in-1.1.1", json!("written"));
    talk.result("in-1.1.2", json!("kept"));
    talk.reply("", &[("c4", "memory_write", new), ("c5", "memory_list", json!({}))]);
    for name in ["UPDATE_MEMORY", "WRITE_MEMORY", "DISPATCH_TASK"] {
        assert!(talk.names.iter().any(|one| one == name), "{name}: {:?}", talk.names);
    }
    talk.result("in-1.2.0", json!("kept"));
    talk.result("in-1.2.1", json!([]));
    talk.reply("I wait.", &[]);
    talk.result("in-1.1.0", json!("built"));
    talk.reply("All is done.", &[]);
    talk.extract();
    assert_eq!(talk.turn(0).status, TurnStatus::Completed);
    talk.say("more");
    let turn = talk.talk().lanes[0].turn.turn_id.clone();
    talk.guide(json!({"cancel_turn": turn}));
    // There are no workflows.
    let made: BTreeSet<&str> = talk.names.iter().map(String::as_str).chain(["DISPATCH_WORKFLOW"]).collect();
    let all: BTreeSet<&str> = NAMES.into_iter().collect();
    assert_eq!(made, all);
}

#[test]
fn s_49_a_single_turn_runs_in_order() {
    let mut talk = Bench::new(json!({}));
    talk.say("hello");
    assert_eq!(talk.token(), "t/in-1/assemble");
    talk.assemble();
    assert_eq!((talk.token(), talk.turn(0).phase), ("t/in-1/move/1", TurnPhase::Thinking));
    talk.reply("Hi!", &[]);
    assert_eq!(talk.turn(0).status, TurnStatus::Completed, "completed before memories are extracted (K-11)");
    assert_eq!(talk.token(), "t/in-1/extract");
    talk.extract();
    assert_eq!(talk.token(), "idle");
    assert!(talk.talk().lanes.is_empty() && talk.calls().is_empty());
    assert_eq!(talk.said(), [("user".into(), "hello".into()), ("agent".into(), "Hi!".into())]);
    assert_eq!(talk.records(LogKind::Move).len(), 1);
    let begun = ["START_TURN", "APPEND_MESSAGE", "RESUME_FROM_TOOL"];
    assert_eq!(talk.names, [&begun[..], &["APPEND_MESSAGE", "COMPLETE_TURN", "WRITE_MEMORY"]].concat());
    let turn = talk.turn(0);
    assert_eq!((turn.moves, turn.context_assembly_run_id.is_some()), (1, true));
    assert!(turn.memory_extraction_run_id.is_some() && turn.issues.is_empty());
    assert_eq!(talk.events(), ["conversation_started", "conversation_turn", "turn.completed"]);
}

#[test]
fn s_52_a_turn_waits_for_a_tool_and_goes_on_with_its_result() {
    let mut talk = Bench::new(json!({})).with_tool("look", json!({}));
    talk.say("find it");
    talk.assemble();
    talk.reply("", &[("c1", "look", json!({"q": "it"}))]);
    assert_eq!((talk.turn(0).phase, talk.turn(0).pending_operations), (TurnPhase::WaitingTool, 1));
    assert_eq!(talk.operations[0].operation_id.as_str(), "in-1.1.0");
    assert!(talk.calls().is_empty(), "nothing is asked while it waits (K-44)");
    talk.result("in-1.1.0", json!({"found": true}));
    let request = talk.request();
    let roles: Vec<Role> = request.messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::Tool]);
    assert_eq!(request.messages[3].content, [Part::tool_result("c1", "{\"found\":true}", false)]);
    talk.reply("There it is.", &[]);
    talk.extract();
    assert_eq!((talk.turn(0).moves, talk.turn(0).status), (2, TurnStatus::Completed));
}

#[test]
fn the_results_of_one_reply_are_awaited_together_and_given_in_the_order_of_the_calls() {
    let mut talk = Bench::new(json!({})).with_tool("look", json!({}));
    talk.say("find both");
    talk.assemble();
    talk.reply("", &[("c1", "look", json!({})), ("c2", "look", json!({})), ("c3", "nothing", json!({}))]);
    talk.result("in-1.1.1", json!("second"));
    assert!(talk.calls().is_empty(), "the first is not there yet (K-15)");
    talk.failure("in-1.1.0", json!({"code": "TIMEOUT", "message": "slow", "retriable": true}));
    let results = talk.request().messages.pop().unwrap().content;
    let ids: Vec<&str> = results
        .iter()
        .map(|part| match part {
            Part::ToolResult { call_id, .. } => call_id.as_str(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(ids, ["c1", "c2", "c3"]);
    assert_eq!(talk.turn(0).issues.tool_failures, 2, "the unknown tool and the slow one");
    let events = talk.records(LogKind::Event).into_iter().map(|record| record.body.to_value());
    let failed: Vec<Value> = events.filter(|event| event["type"] == "tool.failed").collect();
    let told: Vec<_> = failed.iter().map(|event| (&event["tool"], &event["tool_call_id"])).collect();
    assert_eq!(told, [(&json!("nothing"), &json!("c3")), (&json!("look"), &json!("c1"))], "which call it was");
}

#[test]
fn s_67_work_in_the_background_comes_back_to_its_turn() {
    let mut talk = Bench::new(json!({})).with_tool("build", json!({"async": true}));
    talk.say("build it");
    talk.assemble();
    talk.reply("", &[("c1", "build", json!({}))]);
    let placeholder = talk.request().messages.pop().unwrap();
    assert!(format!("{placeholder:?}").contains("in-1.1.0"), "the protocol has its result (K-16)");
    talk.reply("I am working on it.", &[]);
    assert_eq!((talk.turn(0).status, talk.turn(0).phase), (TurnStatus::Active, TurnPhase::WaitingAsync));
    talk.result("in-1.1.0", json!("built"));
    assert!(talk.request().messages.pop().unwrap().plain_text().contains("built"));
    talk.reply("It is built.", &[]);
    assert_eq!(talk.turn(0).status, TurnStatus::Completed);
    let said: Vec<String> = talk.said().into_iter().map(|(_, text)| text).collect();
    assert_eq!(said, ["build it", "I am working on it.", "It is built."]);
}

#[test]
fn a_result_that_comes_while_the_model_is_asked_is_shown_to_it_afterwards() {
    let mut talk = Bench::new(json!({})).with_tool("build", json!({"async": true}));
    talk.say("build it");
    talk.assemble();
    talk.reply("", &[("c1", "build", json!({}))]);
    // The model is asked again with the placeholder, and the work ends meanwhile.
    talk.failure("in-1.1.0", json!("no disk"));
    talk.reply("I am working on it.", &[]);
    assert!(talk.request().messages.iter().any(|message| message.plain_text().contains("no disk")));
    talk.reply("It failed.", &[]);
    assert_eq!(talk.turn(0).status, TurnStatus::Completed);
}

#[test]
fn a_text_beside_work_in_the_background_is_all_that_is_said_for_now() {
    let mut talk = Bench::new(json!({})).with_tool("build", json!({"async": true}));
    talk.say("build it");
    talk.assemble();
    talk.reply("On it.", &[("c1", "build", json!({}))]);
    assert_eq!(talk.turn(0).phase, TurnPhase::WaitingAsync);
    assert!(talk.calls().is_empty());
}

#[test]
fn a_later_turn_may_end_first() {
    let mut talk = Bench::new(json!({})).with_tool("build", json!({"async": true}));
    talk.say("build it");
    talk.assemble();
    talk.reply("On it.", &[("c1", "build", json!({}))]);
    talk.say("what time is it");
    talk.assemble();
    talk.reply("Noon.", &[]);
    talk.extract();
    assert_eq!(talk.turn(1).status, TurnStatus::Completed);
    assert_eq!(talk.turn(0).status, TurnStatus::Active);
    talk.result("in-1.1.0", json!("ok"));
    talk.reply("Built.", &[]);
    assert_eq!(talk.turn(0).status, TurnStatus::Completed);
}

#[test]
fn two_turns_ask_their_models_side_by_side() {
    let mut talk = Bench::new(json!({}));
    talk.say("one");
    talk.say("two");
    let keys: Vec<String> = talk.calls().into_iter().map(|call| call.key).collect();
    assert_eq!(keys, ["in-1/assemble/0", "in-2/assemble/0"]);
}

#[test]
fn t1_rounds_never_exceed_the_limit_and_the_last_request_has_no_tools() {
    let mut talk = Bench::new(json!({})).with_tool("look", json!({}));
    talk.limits.max_rounds = 2;
    talk.say("dig");
    talk.assemble();
    for round in 1..=2 {
        assert!(talk.with_parameters().tool_choice.is_none());
        talk.reply("", &[("c", "look", json!({}))]);
        talk.result(&format!("in-1.{round}.0"), json!("more"));
    }
    assert!(talk.with_parameters().tool_choice.is_some(), "tools are shown and may not be called (K-14)");
    talk.reply("", &[("c", "look", json!({}))]);
    assert_eq!(talk.operations.len(), 2, "the third call is not carried out (T1)");
    assert_eq!(talk.turn(0).status, TurnStatus::Completed);
    assert!(talk.turn(0).issues.moves_exhausted && talk.said()[1].1.contains("Ask again"));
}

#[test]
fn a_posted_message_is_not_written_again() {
    let mut talk = Bench::new(json!({}));
    talk.input(json!({"text": "hi", "message_id": "m-1", "turn_id": "turn-1", "user_id": "ana"}));
    assert!(talk.said().is_empty());
    assert_eq!(talk.turn(0).input_message_id.as_str(), "m-1");
    let again = talk.input(json!({"text": "hi", "turn_id": "turn-1"}));
    assert!(matches!(again, Decision::Refuse { .. }), "{again:?}");
}

#[test]
fn an_empty_reply_fails_the_turn_and_a_cut_one_is_an_issue() {
    let mut talk = Bench::new(json!({}));
    talk.say("hi");
    talk.assemble();
    talk.replies(vec![], Finish::Other);
    assert_eq!((talk.turn(0).status, talk.turn(0).cancelled), (TurnStatus::Failed, false));
    talk.say("again");
    talk.assemble();
    talk.replies(vec![Part::text("once upon a ti")], Finish::Length);
    assert_eq!(talk.turn(1).status, TurnStatus::Completed);
    assert!(talk.turn(1).issues.response_cut);
}
