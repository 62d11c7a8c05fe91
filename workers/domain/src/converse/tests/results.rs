//! Results of others: what they may answer, and what they may say of themselves.

use schemas::conversation::{LogKind, OperationState, TurnPhase, TurnStatus};
use schemas::problem::Code;
use serde_json::{Value, json};

use super::bench::Bench;
use crate::conversation::moves::moves;
use crate::converse::unanswered;
use crate::moniker::Decision;

fn asked(change: Value) -> Bench {
    let mut talk = Bench::new(json!({})).with_tool("pay", change);
    talk.say("pay");
    talk.assemble();
    talk.reply("", &[("c1", "pay", json!({"amount": 5}))]);
    talk
}

fn is_refused(decision: &Decision) -> bool {
    matches!(decision, Decision::Refuse { code: Code::NoOpenOperation, .. })
}

#[test]
fn a_person_is_not_answered_for_by_the_id_of_the_call() {
    let mut talk = asked(json!({"requires_approval": {}}));
    let yes = json!({"approved": true});
    assert!(is_refused(&talk.called("c1", yes.clone())));
    assert!(is_refused(&talk.result("c1", yes.clone())), "nor by calling it an operation");
    assert_eq!(talk.turn(0).phase, TurnPhase::WaitingApproval);
    talk.result("in-1.1.0.ask", yes);
    assert_eq!(talk.turn(0).phase, TurnPhase::WaitingTool);
    talk.called("c1", json!("paid"));
    talk.reply("Paid.", &[]);
    assert_eq!(talk.turn(0).status, TurnStatus::Completed);
}

#[test]
fn a_budget_is_not_raised_by_a_name() {
    let mut talk = Bench::new(json!({})).with_tool("look", json!({}));
    talk.limits.budgets.max_tokens_per_turn = Some(100);
    talk.say("dig");
    talk.assemble();
    super::calls::spend(&mut talk, 150);
    talk.result("in-1.1.0", json!("found"));
    assert_eq!(talk.turn(0).phase, TurnPhase::WaitingApproval);
    let ask = talk.operations.last().unwrap().tool_call_id.clone();
    assert!(is_refused(&talk.called(&ask, json!({"approved": true}))));
}

#[test]
fn a_result_by_the_id_of_the_call_ends_the_operation() {
    for (result, state) in [
        (json!({"result": "paid"}), OperationState::Completed),
        (json!({"result": "paid", "operation_id": null}), OperationState::Completed),
        (json!({"error": {"code": "TIMEOUT", "message": "late"}}), OperationState::Failed),
    ] {
        let mut talk = asked(json!({}));
        let mut payload = result;
        payload["tool_call_id"] = json!("c1");
        talk.ended(payload);
        let last = talk.operations.last().unwrap();
        assert_eq!((last.operation_id.as_str(), last.state), ("in-1.1.0", state));
        assert!(is_refused(&talk.called("c1", json!("again"))), "the first result has won");
    }
}

#[test]
fn only_agents_have_costs_that_count_and_never_negative_ones() {
    let usage = json!({"usage": {"input_tokens": 7, "output_tokens": 9, "cost": -1_000.0}});
    let mut talk = asked(json!({}));
    let before = talk.turn(0).usage;
    talk.result("in-1.1.0", usage.clone());
    assert_eq!(talk.turn(0).usage, before, "a tool's answer is its own matter");
    let mut talk = asked(json!({"target_type": "agent", "target_id": "clerk"}));
    let before = talk.turn(0).usage;
    talk.result("in-1.1.0", usage);
    let after = talk.turn(0).usage;
    assert_eq!((after.input_tokens - before.input_tokens, after.cost - before.cost), (7, 0.0));
}

#[test]
fn a_caller_is_told_of_an_input_that_nobody_takes() {
    let talk = asked(json!({"target_type": "agent", "target_id": "clerk"}));
    let input = talk.follow_ups.last().unwrap().payload.to_value();
    let told = unanswered(&input, "the session has ended").expect("somebody waits");
    let payload = told.payload.to_value();
    assert_eq!((told.session_id.as_str(), payload["operation_id"].as_str()), ("s-1", Some("in-1.1.0")));
    assert!(payload["error"]["message"].as_str().unwrap().contains("has ended"));
    assert!(unanswered(&json!({"text": "hello"}), "no").is_none());
}

/// The results of each reply's calls, as a turn is shown.
fn shown(talk: &Bench) -> Vec<Vec<Value>> {
    moves(talk.log.iter()).into_iter().map(|one| one.tool_results).collect()
}

#[test]
fn a_result_that_comes_late_says_which_reply_called() {
    for (gate, is_old) in [(Value::Null, false), (json!({}), false), (Value::Null, true)] {
        let mut talk = Bench::new(json!({})).with_tool("slow", json!({"async": true, "requires_approval": gate}));
        talk.say("build it");
        talk.assemble();
        talk.reply("I begin.", &[("c1", "slow", json!({}))]);
        if gate.is_object() {
            talk.result("in-1.1.0.ask", json!({"approved": true}));
        }
        talk.guide(json!("and?"));
        talk.reply("It is not done yet.", &[]);
        if is_old {
            // As an earlier release has left it.
            talk.state["lanes"][0]["open"][0].as_object_mut().unwrap().remove("number");
        }
        talk.result("in-1.1.0", json!("built"));
        let late = talk.records(LogKind::AsyncResult)[0].body.to_value();
        assert_eq!((&late["tool_call_id"], &late["operation_id"]), (&json!("c1"), &json!("in-1.1.0")));
        assert_eq!(late["move"], if is_old { Value::Null } else { json!(1) });
        assert_eq!(shown(&talk), [vec![late], vec![]], "it is of the first reply");
    }
}
