//! Models that tools ask: what they use counts as the turn's, whatever becomes of the tool and of the turn.

use schemas::conversation::{LogKind, OperationKind, TurnPhase, TurnStatus};
use schemas::definition::{ActionKind, NamespaceBudget};
use serde_json::{Value, json};

use super::bench::Bench;
use super::calls::spend;
use crate::chat::{Finish, Part, ToolCall};
use crate::converse::{Found, Reply};
use crate::moniker::Decision;
use crate::spending::Spent;
use crate::tool::ResolvedTarget;

/// A call of a model for a tool, as an executor tells it.
fn call(id: &str, tokens: u64) -> Value {
    json!({"id": id, "conversation_id": "c-1", "turn_id": "in-1", "provider": "p", "model": "m", "operation": "chat",
        "started_at_ms": 5, "cost": 0.5,
        "usage": {"input_tokens": tokens, "output_tokens": 1, "total_tokens": tokens + 1}})
}

/// A turn that waits for its tool.
fn waiting() -> Bench {
    let mut talk = Bench::new(json!({})).with_tool("look", json!({}));
    talk.say("find");
    talk.assemble();
    talk.reply("", &[("c1", "look", json!({}))]);
    talk
}

fn used(talk: &Bench) -> (u64, u64, f64) {
    let used = talk.talk().used;
    (used.input_tokens, used.output_tokens, used.cost)
}

#[test]
fn what_a_tool_asks_of_models_is_recorded_with_its_result() {
    let mut talk = waiting();
    let calls = json!([call("in-1.1.0.llm.1", 60), call("in-1.1.0.call.0.llm.1", 50)]);
    talk.ended(json!({"operation_id": "in-1.1.0", "result": "x", "provider_calls": calls}));
    let ids: Vec<&str> = talk.records(LogKind::ProviderCall).iter().map(|record| record.id.as_str()).collect();
    assert_eq!(ids, ["in-1.1.0.llm.1.call", "in-1.1.0.call.0.llm.1.call"]);
    let own = talk.turn(0).usage;
    assert_eq!((own.input_tokens, own.output_tokens, own.cost), (110, 2, 1.0));
    assert_eq!(used(&talk), (110, 2, 1.0));
    assert!(talk.request().messages.iter().all(|message| !format!("{message:?}").contains("llm")), "for no model");
}

#[test]
fn a_budget_that_a_tool_used_up_asks_before_the_model_is_asked_again() {
    let mut talk = Bench::new(json!({})).with_tool("look", json!({}));
    talk.limits.budgets.max_tokens_per_turn = Some(100);
    talk.say("find");
    talk.assemble();
    talk.reply("", &[("c1", "look", json!({}))]);
    let calls = json!([call("in-1.1.0.llm.1", 99)]);
    talk.ended(json!({"operation_id": "in-1.1.0", "error": "no", "provider_calls": calls}));
    assert_eq!(talk.turn(0).phase, TurnPhase::WaitingApproval);
    assert!(talk.calls().is_empty());
}

#[test]
fn attempts_that_are_made_again_are_told_by_guidance_that_is_for_no_model() {
    let mut talk = waiting();
    let spent = json!({"spent": {"operation_id": "in-1.1.0", "provider_calls": [call("in-1.1.0.llm.1", 7)]}});
    talk.guide(spent);
    assert_eq!((used(&talk), talk.talk().notes_taken), ((7, 1, 0.5), 0));
    assert_eq!((talk.turn(0).usage.input_tokens, talk.turn(0).phase), (7, TurnPhase::WaitingTool));
    talk.ended(json!({"operation_id": "in-1.1.0", "result": 1, "provider_calls": [call("in-1.1.0.llm.2", 8)]}));
    assert_eq!((used(&talk), talk.records(LogKind::ProviderCall).len()), ((15, 2, 1.0), 2));
}

#[test]
fn what_comes_when_the_turn_has_ended_still_counts_for_the_session() {
    let mut talk = waiting();
    talk.guide(json!({"cancel_turn": "in-1"}));
    assert_eq!(talk.turn(0).status, TurnStatus::Failed);
    let refused = talk.ended(json!({"operation_id": "in-1.1.0", "result": 1}));
    assert!(matches!(refused, Decision::Refuse { .. }), "{refused:?}");
    let late = json!({"operation_id": "in-1.1.0", "result": 1, "provider_calls": [call("in-1.1.0.llm.1", 7)]});
    let taken = talk.ended(late);
    assert!(matches!(taken, Decision::Emit { .. }), "{taken:?}");
    assert_eq!((used(&talk), talk.records(LogKind::ProviderCall).len()), ((7, 1, 0.5), 1));
    assert!(talk.records(LogKind::ToolResult).is_empty(), "nobody is told the result");
}

/// The tool's action asks a model.
fn asking() -> Bench {
    let mut talk = asking_with(json!({}));
    talk.limits.budgets.max_tokens_per_turn = Some(100);
    talk.say("find");
    talk.assemble();
    talk
}

/// The same before its turn.
fn asking_with(change: Value) -> Bench {
    let mut talk = Bench::new(json!({})).with_tool("look", change);
    let ResolvedTarget::Action(action) = &mut talk.tools[0].target else { panic!("an action") };
    action.kind = ActionKind::Llm;
    talk
}

/// A reply that calls the tool so often.
fn calls(talk: &Bench, count: usize, input: &Value) -> Reply {
    let call = |n| {
        let (id, name) = (format!("c{n}"), "look".to_owned());
        Part::ToolCall(ToolCall { id, name, input: input.clone(), invalid: None, signature: None })
    };
    talk.heard((0..count).map(call).collect(), Finish::ToolUse)
}

fn kinds(talk: &Bench) -> Vec<OperationKind> {
    talk.operations.iter().map(|one| one.kind).collect()
}

const TASK: OperationKind = OperationKind::Task;
const ASK: OperationKind = OperationKind::Approval;

#[test]
fn of_the_calls_of_one_reply_as_many_are_made_as_the_budget_has_moves_for() {
    let mut talk = asking_with(json!({}));
    talk.limits.budgets.max_moves_per_session = Some(3);
    talk.say("find");
    talk.assemble();
    let reply = calls(&talk, 4, &json!({}));
    talk.answer("chat", reply.into());
    assert_eq!(kinds(&talk), [TASK, TASK, ASK, ASK], "the reply is the first of three");
    assert_eq!(talk.turn(0).phase, TurnPhase::WaitingApproval);
    talk.result("in-1.1.2.ask", json!({"approved": true}));
    assert_eq!(kinds(&talk)[4..], [TASK], "the one call, whatever it goes beyond");
    talk.result("in-1.1.3.ask", json!({"approved": false}));
    for n in 0..3 {
        let told = json!([call(&format!("in-1.1.{n}.llm.1"), 7)]);
        talk.ended(json!({"operation_id": format!("in-1.1.{n}"), "result": "x", "provider_calls": told}));
    }
    assert_eq!(talk.talk().moves, 4, "what tools asked counts like replies");
    assert_eq!((talk.turn(0).phase, talk.calls().len()), (TurnPhase::WaitingApproval, 0), "and so the next reply asks");
}

#[test]
fn what_a_call_gives_a_model_is_held_against_what_is_left_of_tokens() {
    let mut talk = asking();
    let mut reply = calls(&talk, 3, &json!({"q": "x".repeat(150)}));
    reply.record = Some(serde_json::from_value(call("in-1.1", 39)).unwrap());
    talk.answer("chat", reply.into());
    assert_eq!(kinds(&talk), [TASK, ASK, ASK], "of 100 tokens, 40 are used; 40 for the first call, as the estimate is");
}

#[test]
fn calls_are_held_against_what_the_namespace_has_left() {
    for (max_moves, spent, made) in [(2, 0, 1), (7, 2, 4), (5, 4, 0)] {
        let mut talk = asking_with(json!({}));
        talk.say("find");
        talk.assemble();
        let mut reply = calls(&talk, 4, &json!({}));
        reply.record = Some(serde_json::from_value(call("in-1.1", 9)).unwrap());
        let budget = NamespaceBudget { max_moves: Some(max_moves), ..NamespaceBudget::default() };
        reply.found.namespace = Some((budget, Spent { calls: spent, ..Spent::default() }));
        talk.answer("chat", reply.into());
        let tasks = kinds(&talk).iter().filter(|kind| **kind == TASK).count();
        assert_eq!((tasks, kinds(&talk).len()), (made, 4), "of {max_moves}, {spent} were used before the reply");
        assert_eq!(talk.turn(0).status, TurnStatus::Active, "it fails for none of them");
    }
}

#[test]
fn calls_are_held_against_the_time_of_the_turn() {
    for (at_ms, kind) in [(5_999, TASK), (6_000, ASK)] {
        let mut talk = asking_with(json!({}));
        talk.limits.budgets.max_seconds_per_turn = Some(5);
        talk.say("find");
        talk.assemble();
        let mut reply = calls(&talk, 1, &json!({}));
        reply.found = Found { at_ms, namespace: None };
        talk.answer("chat", reply.into());
        assert_eq!(kinds(&talk), [kind]);
    }
}

#[test]
fn calls_that_are_under_way_count_until_they_have_told() {
    let mut talk = asking_with(json!({"async": true}));
    talk.limits.budgets.max_moves_per_session = Some(5);
    talk.say("find");
    talk.assemble();
    for _ in 0..2 {
        let reply = calls(&talk, 2, &json!({}));
        talk.answer("chat", reply.into());
    }
    assert_eq!(kinds(&talk), [TASK, TASK, TASK, ASK], "two replies, and three calls");
}

#[test]
fn a_tool_that_asks_a_model_over_the_budget_waits_for_a_person() {
    let mut talk = asking();
    spend(&mut talk, 99);
    assert_eq!(talk.operations[0].kind, OperationKind::Task, "there is something left");
    let mut talk = asking();
    spend(&mut talk, 100);
    assert_eq!((kinds(&talk), talk.turn(0).phase), (vec![ASK], TurnPhase::WaitingApproval));
    talk.result("in-1.1.0.ask", json!({"approved": true}));
    assert_eq!(kinds(&talk), [ASK, TASK]);
}

#[test]
fn other_tools_are_not_held_up_by_the_budget() {
    let mut talk = Bench::new(json!({})).with_tool("look", json!({}));
    talk.limits.budgets.max_tokens_per_turn = Some(100);
    talk.say("find");
    talk.assemble();
    spend(&mut talk, 100);
    assert_eq!(talk.operations[0].kind, OperationKind::Task);
}
