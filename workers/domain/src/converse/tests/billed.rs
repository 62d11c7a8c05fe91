//! Models that tools ask: what they use counts as the turn's, whatever becomes of the tool and of the turn.

use schemas::conversation::{LogKind, OperationKind, TurnPhase, TurnStatus};
use schemas::definition::ActionKind;
use serde_json::{Value, json};

use super::bench::Bench;
use super::calls::spend;
use crate::moniker::Decision;
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
    let mut talk = Bench::new(json!({})).with_tool("look", json!({}));
    let ResolvedTarget::Action(action) = &mut talk.tools[0].target else { panic!("an action") };
    action.kind = ActionKind::Llm;
    talk.limits.budgets.max_tokens_per_turn = Some(100);
    talk.say("find");
    talk.assemble();
    talk
}

#[test]
fn a_tool_that_asks_a_model_over_the_budget_waits_for_a_person() {
    let mut talk = asking();
    spend(&mut talk, 99);
    assert_eq!(talk.operations[0].kind, OperationKind::Task, "there is something left");
    let mut talk = asking();
    spend(&mut talk, 100);
    let kinds = |talk: &Bench| talk.operations.iter().map(|one| one.kind).collect::<Vec<_>>();
    assert_eq!((kinds(&talk), talk.turn(0).phase), (vec![OperationKind::Approval], TurnPhase::WaitingApproval));
    talk.result("in-1.1.0.ask", json!({"approved": true}));
    assert_eq!(kinds(&talk), [OperationKind::Approval, OperationKind::Task]);
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
