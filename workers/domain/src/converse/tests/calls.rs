//! Agents that call agents, approvals, and budgets.

use schemas::action::ActionType;
use schemas::conversation::{OperationKind, OperationState, TurnPhase, TurnStatus};
use serde_json::json;

use super::bench::Bench;
use crate::chat::{ProviderCallRecord, Usage};
use crate::effect::Outcome;

#[test]
fn a_delegate_gets_the_input_alone_and_answers_its_caller() {
    let mut talk = Bench::new(json!({})).with_tool("dev", json!({"target_type": "agent", "target_id": "developer"}));
    talk.say("write it");
    talk.assemble();
    talk.reply("", &[("c1", "dev", json!({"task": "write a parser"}))]);
    assert_eq!(talk.turn(0).phase, TurnPhase::WaitingAgent);
    let [create, input] = talk.follow_ups.as_slice() else { panic!("{:?}", talk.follow_ups) };
    assert_eq!((create.kind, input.kind), (ActionType::Create, ActionType::Input));
    let spec = &create.session.as_ref().unwrap().0.spec;
    assert_ne!(spec.conversation_id.as_ref().unwrap().as_str(), "c-1", "a conversation of its own (K-19)");
    assert_eq!(spec.parent.as_ref().unwrap().as_str(), "s-1");
    let given = input.payload.to_value();
    assert_eq!(given["text"], "write a parser");
    assert_eq!(given["caller"], json!({"type": "agent", "agent_id": "ada", "turn_id": "in-1"}));
    talk.result("in-1.1.0", json!({"text": "done", "usage": {"input_tokens": 7, "output_tokens": 3, "cost": 0.5}}));
    assert_eq!(talk.turn(0).usage.input_tokens, 7, "its cost adds up to the caller's");
    talk.reply("It is written.", &[]);
    assert_eq!(talk.turn(0).status, TurnStatus::Completed);
}

#[test]
fn a_called_session_answers_with_its_last_text_and_ends() {
    let mut child = Bench::new(json!({"single_turn": true, "depth": 1}));
    child.input(json!({"text": "write", "turn_id": "op.t",
        "caller": {"type": "agent", "agent_id": "ada", "turn_id": "in-1"},
        "reply_to": {"session_id": "s-0", "operation_id": "op"}}));
    child.assemble();
    child.reply("Written.", &[]);
    let answer = child.follow_ups.last().unwrap();
    assert_eq!((answer.kind, answer.session_id.as_str()), (ActionType::ToolResult, "s-0"));
    assert_eq!(answer.payload.to_value()["result"]["text"], "Written.");
    assert!(!child.done, "memories are extracted first");
    child.extract();
    assert!(child.done);
}

#[test]
fn a_failed_delegate_tells_its_caller_what_to_expect() {
    let mut child = Bench::new(json!({"single_turn": true}));
    child.input(json!({"text": "write", "reply_to": {"session_id": "s-0", "operation_id": "op"}}));
    child.answer("assemble", Outcome::Ok(json!("no assembly")));
    let error = child.follow_ups.last().unwrap().payload.to_value()["error"].clone();
    assert_eq!((error["code"].as_str(), error["retriable"].as_bool()), (Some("EXECUTION_FAILED"), Some(true)));
    assert_eq!(child.events().last().unwrap(), "turn.failed");
    assert!(child.done);
}

#[test]
fn who_is_looped_in_joins_and_the_caller_goes_on() {
    let tool = json!({"target_type": "agent", "target_id": "architect", "invocation_mode": "loop_in"});
    let mut talk = Bench::new(json!({})).with_tool("arch", tool);
    talk.say("ask the architect");
    talk.assemble();
    talk.reply("", &[("c1", "arch", json!({"question": "how?"}))]);
    let spec = &talk.follow_ups[0].session.as_ref().unwrap().0.spec;
    assert_eq!(spec.conversation_id.as_ref().unwrap().as_str(), "c-1");
    assert!(talk.operations.is_empty(), "nothing is waited for (K-18)");
    assert!(format!("{:?}", talk.request().messages.last()).contains("joined"));
}

#[test]
fn agents_call_one_another_to_a_depth() {
    let tool = json!({"target_type": "agent", "target_id": "developer"});
    let mut talk = Bench::new(json!({"depth": 8})).with_tool("dev", tool);
    talk.say("go");
    talk.assemble();
    talk.reply("", &[("c1", "dev", json!({"task": "x"}))]);
    assert!(talk.follow_ups.is_empty() && talk.turn(0).issues.tool_failures == 1);
}

#[test]
fn a_tool_that_needs_a_yes_waits_for_a_person() {
    let mut talk = Bench::new(json!({})).with_tool("pay", json!({"requires_approval": {"expires_s": 60}}));
    talk.say("pay");
    talk.assemble();
    talk.reply("", &[("c1", "pay", json!({"amount": 5}))]);
    assert_eq!(talk.turn(0).phase, TurnPhase::WaitingApproval);
    let operation = &talk.operations[0];
    assert_eq!(operation.kind, OperationKind::Approval);
    assert_eq!(operation.approval.as_ref().map(|ask| ask.expires_ms), Some(60_000));
    let ask = operation.operation_id.to_string();
    talk.result(&ask, json!({"approved": false, "by": "ana", "reason": "too much"}));
    assert!(format!("{:?}", talk.request().messages.last()).contains("too much"));
}

#[test]
fn a_tool_runs_with_the_approved_arguments_after_the_yes() {
    let mut talk = Bench::new(json!({})).with_tool("pay", json!({"requires_approval": {}}));
    talk.say("pay");
    talk.assemble();
    talk.reply("", &[("c1", "pay", json!({"amount": 5}))]);
    assert_eq!(talk.operations.len(), 1, "nothing runs before the yes");
    talk.result("in-1.1.0.ask", json!({"approved": true, "by": "ana"}));
    assert_eq!((talk.operations[1].kind, talk.turn(0).phase), (OperationKind::Task, TurnPhase::WaitingTool));
    assert_eq!(talk.operations[1].request.to_value()["input"], json!({"amount": 5}));
    talk.result("in-1.1.0", json!("paid"));
    talk.reply("Paid.", &[]);
    assert_eq!(talk.turn(0).status, TurnStatus::Completed);
}

#[test]
fn an_agent_behind_an_approval_is_called_after_the_yes() {
    let tool = json!({"target_type": "agent", "target_id": "developer", "requires_approval": {}});
    let mut talk = Bench::new(json!({})).with_tool("dev", tool);
    talk.say("go");
    talk.assemble();
    talk.reply("", &[("c1", "dev", json!({"task": "x"}))]);
    assert!(talk.follow_ups.is_empty());
    let ask = talk.operations[0].operation_id.to_string();
    talk.result(&ask, json!({"approved": true}));
    assert_eq!(talk.follow_ups.len(), 2);
    assert_eq!(talk.turn(0).phase, TurnPhase::WaitingAgent);
    talk.result("in-1.1.0", json!({"text": "done"}));
    talk.reply("Done.", &[]);
    assert_eq!(talk.turn(0).status, TurnStatus::Completed);
}

#[test]
fn a_turn_over_its_budget_asks_and_does_not_fail() {
    let mut talk = Bench::new(json!({})).with_tool("look", json!({}));
    talk.limits.max_tokens = Some(100);
    talk.say("dig");
    talk.assemble();
    spend(&mut talk, 150);
    talk.result("in-1.1.0", json!("found"));
    assert!(talk.calls().is_empty(), "checked before the call");
    assert_eq!(talk.turn(0).phase, TurnPhase::WaitingApproval);
    let ask = talk.operations.last().unwrap().operation_id.to_string();
    talk.result(&ask, json!({"approved": true}));
    talk.reply("Here.", &[]);
    assert_eq!(talk.turn(0).status, TurnStatus::Completed);
}

#[test]
fn a_budget_that_is_denied_ends_the_turn() {
    let mut talk = Bench::new(json!({})).with_tool("look", json!({}));
    talk.limits.max_tokens = Some(100);
    talk.say("dig");
    talk.assemble();
    spend(&mut talk, 150);
    talk.result("in-1.1.0", json!("found"));
    let ask = talk.operations.last().unwrap().operation_id.to_string();
    talk.result(&ask, json!({"approved": false}));
    assert_eq!(talk.turn(0).error.as_ref().unwrap().code, "budget_exhausted");
}

/// A reply that costs so many tokens and calls a tool.
fn spend(talk: &mut Bench, tokens: u64) {
    let mut reply = talk.blank();
    let usage = Usage { input_tokens: tokens, total_tokens: tokens, ..Usage::default() };
    let record = json!({"id": "r", "conversation_id": "c", "turn_id": "t", "provider": "p", "model": "m",
        "operation": "chat", "started_at_ms": 0, "usage": usage});
    reply.record = Some(serde_json::from_value::<ProviderCallRecord>(record).unwrap());
    let said = json!({"parts": [{"type": "tool_call", "id": "c1", "name": "look", "input": {}}],
        "finish": "tool_calls", "provider": "p", "model": "m", "raw": {}});
    reply.reply = Some(serde_json::from_value(said).unwrap());
    talk.answer("chat", Outcome::Ok(json!(reply)));
}

#[test]
fn results_count_once_and_unknown_ones_are_refused() {
    let mut talk = Bench::new(json!({})).with_tool("look", json!({}));
    talk.say("find");
    talk.assemble();
    talk.reply("", &[("c1", "look", json!({}))]);
    talk.result("in-1.1.0", json!(1));
    for operation in ["in-1.1.0", "elsewhere"] {
        let decision = talk.result(operation, json!(2));
        assert!(matches!(decision, crate::moniker::Decision::Refuse { .. }), "{decision:?}");
    }
    assert!(talk.operations.iter().all(|operation| operation.state == OperationState::Pending));
}

#[test]
fn s_93_compaction_that_is_not_configured_says_so_and_fails_nobody() {
    let mut talk = Bench::new(json!({}));
    talk.tools = crate::tool::builtins();
    talk.say("compact yourself");
    talk.assemble();
    talk.reply("", &[("c1", "compact_context", json!({}))]);
    assert!(talk.operations.is_empty() && talk.turn(0).issues.tool_failures == 0);
    assert!(format!("{:?}", talk.request().messages.last()).contains("not configured"));
    talk.reply("I cannot.", &[]);
    assert_eq!(talk.turn(0).status, TurnStatus::Completed);
}
