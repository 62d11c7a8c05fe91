//! Agents that call agents, approvals, and budgets.

use schemas::action::ActionType;
use schemas::conversation::{Operation, OperationKind, OperationState, TurnPhase, TurnStatus};
use schemas::definition::{ActionKind, Budgets, NamespaceBudget};
use serde_json::json;

use super::bench::Bench;
use crate::chat::{ProviderCallRecord, Usage};
use crate::converse::{Bound, Checks, Measure, Next, Over, Scope, Span};
use crate::effect::{Effect, Outcome, TalkWork};
use crate::spending::Spent;
use crate::tool::{Builtin, ResolvedTarget};

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
    let new = &talk.follow_ups[0].session.as_ref().unwrap().0;
    assert_eq!(new.spec.conversation_id.as_ref().unwrap().as_str(), "c-1");
    assert_eq!(new.added_by_turn_id.as_ref().map(|id| id.as_str()), Some("in-1"), "who brought it in is kept");
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

/// A turn that has asked a person for more than a yes.
fn asking_a_person() -> Bench {
    let mut talk = Bench::new(json!({})).with_tool("ask_ana", json!({}));
    if let ResolvedTarget::Action(action) = &mut talk.tools[0].target {
        action.kind = ActionKind::Human;
        action.operation = "input".to_owned();
    }
    talk.say("ask ana");
    talk.assemble();
    talk.reply("", &[("c1", "ask_ana", json!({"topic": "colour"}))]);
    assert_eq!(talk.turn(0).phase, TurnPhase::WaitingApproval);
    talk
}

#[test]
fn what_a_person_answers_is_the_result() {
    let mut talk = asking_a_person();
    let ask = talk.operations[0].operation_id.to_string();
    talk.result(&ask, json!({"approved": true, "by": "ana", "answer": {"colour": "blue"}}));
    let told = format!("{:?}", talk.request().messages.last());
    assert!(told.contains("blue") && !told.contains("approved"), "{told}");
    assert_eq!(talk.operations.len(), 1, "the question was the work");
    talk.reply("Blue it is.", &[]);
    assert_eq!(talk.turn(0).status, TurnStatus::Completed);
}

#[test]
fn a_yes_alone_and_a_no_are_results_as_they_are() {
    for said in [json!({"approved": true, "by": "ana"}), json!({"approved": false, "by": "ana", "answer": "x"})] {
        let mut talk = asking_a_person();
        let ask = talk.operations[0].operation_id.to_string();
        talk.result(&ask, said);
        let told = format!("{:?}", talk.request().messages.last());
        assert!(told.contains("approved"), "{told}");
    }
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
    talk.limits.budgets.max_tokens_per_turn = Some(100);
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
    talk.limits.budgets.max_tokens_per_turn = Some(100);
    talk.say("dig");
    talk.assemble();
    spend(&mut talk, 150);
    talk.result("in-1.1.0", json!("found"));
    let ask = talk.operations.last().unwrap().operation_id.to_string();
    talk.result(&ask, json!({"approved": false}));
    assert_eq!(talk.turn(0).error.as_ref().unwrap().code, "budget_exhausted");
}

#[test]
fn a_session_over_its_budget_asks_once_for_all_its_turns() {
    let mut talk = Bench::new(json!({})).with_tool("look", json!({}));
    talk.limits.budgets.max_tokens_per_session = Some(100);
    talk.say("dig");
    talk.assemble();
    spend(&mut talk, 150);
    talk.say("and here?");
    talk.assemble();
    talk.result("in-1.1.0", json!("found"));
    let asks: Vec<_> = talk.operations.iter().filter(|one| one.kind == OperationKind::Approval).cloned().collect();
    assert_eq!(asks.len(), 1, "{asks:?}");
    let shown = asks[0].request.to_value();
    assert_eq!((shown["scope"].clone(), shown["what"].clone()), (json!("session"), json!("tokens")));
    let (input, words) = (&shown["input"], shown["question"].as_str().unwrap_or_default());
    assert_eq!((&input["used"], &input["limit"]), (&json!(150), &json!(100)));
    assert_eq!(input["bound"], "max_tokens_per_session");
    assert!(words.contains("150 of 100 tokens") && words.contains("here: 100 tokens"), "{words}");
    assert!(talk.calls().is_empty(), "both wait");
    // The turn that asked ends; the question is the other one's still.
    let asker = asks[0].turn_id.to_string();
    talk.guide(json!({"cancel_turn": asker}));
    let ask = asks[0].operation_id.to_string();
    let now = talk.operations.iter().find(|one| one.operation_id == asks[0].operation_id).unwrap();
    assert_eq!(now.state, OperationState::Pending);
    talk.result(&ask, json!({"approved": true}));
    talk.reply("Here.", &[]);
    assert_eq!(talk.turns.iter().filter(|turn| turn.status == TurnStatus::Completed).count(), 1);
    talk.say("more?");
    talk.assemble();
    assert_eq!(talk.calls().len(), 2, "one more budget is allowed: a reply, and the extraction before it");
}

#[test]
fn what_is_found_over_before_the_call_asks_and_the_call_is_made_after_the_yes() {
    let mut talk = Bench::new(json!({}));
    talk.say("dig");
    talk.assemble();
    let mut reply = talk.blank();
    reply.over = Some(over(Scope::Namespace, Measure::Cost, (2.0, 1.5)));
    talk.answer("chat", reply.into());
    assert_eq!((talk.turn(0).phase, talk.turn(0).moves), (TurnPhase::WaitingApproval, 0));
    let ask = talk.operations.last().unwrap().operation_id.to_string();
    talk.result(&ask, json!({"approved": true}));
    assert_eq!(talk.talk().raised.namespace, 1);
    talk.reply("Here.", &[]);
    assert_eq!(talk.turn(0).status, TurnStatus::Completed);
}

#[test]
fn time_and_the_namespace_are_checked_with_a_clock_and_what_is_stored() {
    let span = Span { scope: Scope::Turn, since_ms: 10_000, max_seconds: 5 };
    let (checks, next) = (Checks { spans: vec![span], raised: 1, ..Checks::default() }, Next::default());
    assert_eq!(checks.over(14_999, next, None), None);
    let late = checks.over(15_000, next, None).expect("late");
    assert_eq!((late.scope, late.what), (Scope::Turn, Measure::Seconds));
    let budget = NamespaceBudget { max_cost: Some(1.5), ..NamespaceBudget::default() };
    let spent = |cost_nanos| Spent { tokens: 9, cost_nanos, calls: 1 };
    assert_eq!(checks.over(0, next, Some((&budget, &spent(2_999_999_999)))), None, "it was raised once");
    let over = checks.over(0, next, Some((&budget, &spent(3_000_000_000)))).expect("over");
    assert_eq!((over.scope, over.what, over.limit), (Scope::Namespace, Measure::Cost, 3.0));
}

#[test]
fn time_counts_anew_from_the_yes() {
    let mut talk = Bench::new(json!({}));
    talk.limits.budgets.max_seconds_per_turn = Some(5);
    talk.say("dig");
    talk.assemble();
    let since = |talk: &Bench| match talk.calls().remove(0).effect {
        Effect::Talk(call) => match call.what {
            TalkWork::Chat { checks, .. } => checks.spans[0].since_ms,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    let begun = since(&talk);
    let mut reply = talk.blank();
    reply.over = Some(over(Scope::Turn, Measure::Seconds, (6.0, 5.0)));
    talk.answer("chat", reply.into());
    let ask = talk.operations.last().unwrap().operation_id.to_string();
    talk.result(&ask, json!({"approved": true}));
    assert_eq!((begun, talk.talk().lanes[0].since_ms, since(&talk)), (1_000, Some(1_000), 1_000));
}

#[test]
fn deeper_than_the_budget_a_person_is_asked() {
    let tool = json!({"target_type": "agent", "target_id": "developer"});
    let mut talk = Bench::new(json!({"depth": 1})).with_tool("dev", tool);
    talk.constraints.budgets = Some(Budgets { max_depth: Some(1), ..Budgets::default() });
    talk.say("go");
    talk.assemble();
    talk.reply("", &[("c1", "dev", json!({"task": "x"}))]);
    assert!(talk.follow_ups.is_empty());
    assert_eq!(talk.turn(0).phase, TurnPhase::WaitingApproval);
    let ask = talk.operations[0].operation_id.to_string();
    talk.result(&ask, json!({"approved": true}));
    assert_eq!(talk.follow_ups.len(), 2, "raised for this call");
}

/// What a call was found to be over before it was made.
fn over(scope: Scope, what: Measure, (used, limit): (f64, f64)) -> Over {
    Over { scope, what, used, next: 0.0, limit, more: limit, times: 1 }
}

#[test]
fn the_next_request_is_held_against_what_is_left() {
    let known = |what, used, max, raised| Bound { scope: Scope::Turn, what, used, max, raised };
    let over = |known: Bound, next| Checks { known: vec![known], ..Checks::default() }.over(0, next, None);
    let tokens = |tokens| Next { tokens, cost: 0.0 };
    assert_eq!(over(known(Measure::Tokens, 380.0, 500.0, 0), tokens(120)), None, "it just fits");
    let found = over(known(Measure::Tokens, 380.0, 500.0, 0), tokens(121)).expect("one token too many");
    assert_eq!((found.used, found.next, found.limit, found.more, found.times), (380.0, 121.0, 500.0, 500.0, 1));
    // One yes is enough, however large the request is.
    let found = over(known(Measure::Tokens, 380.0, 500.0, 1), tokens(1_830)).expect("too large by far");
    assert_eq!((found.limit, found.more, found.times), (1_000.0, 1_500.0, 3));
    assert_eq!(over(known(Measure::Tokens, 380.0, 500.0, 1 + 3), tokens(1_830)), None);
    let cost = Next { tokens: 9, cost: 0.25 };
    assert_eq!(over(known(Measure::Cost, 0.5, 0.75, 0), cost), None);
    assert_eq!(over(known(Measure::Cost, 0.5, 0.7, 0), cost).map(|over| over.what), Some(Measure::Cost));
    assert_eq!(over(known(Measure::Moves, 2.0, 3.0, 0), cost), None, "a request is not known to take more than one");
    assert!(over(known(Measure::Moves, 3.0, 3.0, 0), cost).is_some());
}

#[test]
fn no_yes_is_followed_by_the_same_question() {
    let over = |used, max, raised, cost| {
        let known = vec![Bound { scope: Scope::Turn, what: Measure::Cost, used, max, raised }];
        Checks { known, ..Checks::default() }.over(0, Next { tokens: 9, cost }, None)
    };
    // By the sums alone it would be 8 times more, of which rounding takes too much.
    let found = over(0.4, 0.51, 1, 4.7).expect("over");
    assert_eq!((found.times, over(0.4, 0.51, 1 + found.times, 4.7)), (9, None));
    // Nothing is allowed, however often that is.
    let found = over(0.0, 0.0, 0, 0.25).expect("over");
    assert_eq!((found.times, over(0.0, 0.0, 1, 0.25)), (1, None));
    // More than can be counted; the first time of a turn is its own.
    let found = over(0.0, 1e-9, 0, 10.0).expect("over");
    assert_eq!((found.times, over(0.0, 1e-9, u32::MAX - 1, 10.0)), (u32::MAX, None));
}

#[test]
fn the_namespace_is_held_against_the_next_request_too() {
    let budget = NamespaceBudget { max_tokens: Some(100), ..NamespaceBudget::default() };
    let spent = Spent { tokens: 60, cost_nanos: 0, calls: 1 };
    let over = |raised, tokens| {
        let checks = Checks { raised, ..Checks::default() };
        checks.over(0, Next { tokens, cost: 0.0 }, Some((&budget, &spent)))
    };
    assert_eq!(over(0, 40), None);
    let found = over(0, 41).expect("over");
    assert_eq!((found.scope, found.next, found.times), (Scope::Namespace, 41.0, 1));
    assert_eq!(over(1, 41), None);
}

#[test]
fn one_yes_lets_a_request_go_that_is_larger_than_the_budget() {
    let mut talk = Bench::new(json!({}));
    talk.limits.budgets.max_tokens_per_turn = Some(100);
    talk.say("dig");
    talk.assemble();
    let checks = |talk: &Bench| match talk.calls().remove(0).effect {
        Effect::Talk(call) => match call.what {
            TalkWork::Chat { checks, .. } => checks,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    let next = Next { tokens: 830, cost: 0.0 };
    let mut reply = talk.blank();
    reply.over = checks(&talk).over(0, next, None);
    talk.answer("chat", reply.into());
    let ask = talk.operations.last().unwrap();
    let (ask, words) = (ask.operation_id.to_string(), ask.request.to_value()["question"].to_string());
    assert!(words.contains("0 of 100 tokens, and the next request alone has about 830"), "{words}");
    talk.result(&ask, json!({"approved": true}));
    assert_eq!(checks(&talk).over(0, next, None), None);
    talk.reply("Here.", &[]);
    assert_eq!(talk.turn(0).status, TurnStatus::Completed);
}

/// A reply that costs so many tokens and calls a tool.
pub(super) fn spend(talk: &mut Bench, tokens: u64) {
    let mut reply = talk.blank();
    let usage = Usage { input_tokens: tokens, total_tokens: tokens, ..Usage::default() };
    let record = json!({"id": "r", "conversation_id": "c", "turn_id": "t", "provider": "p", "model": "m",
        "operation": "chat", "started_at_ms": 0, "usage": usage});
    reply.record = Some(serde_json::from_value::<ProviderCallRecord>(record).unwrap());
    let said = json!({"parts": [{"type": "tool_call", "id": "c1", "name": "look", "input": {}}],
        "finish": "tool_calls", "provider": "p", "model": "m", "raw": {}});
    reply.reply = Some(serde_json::from_value(said).unwrap());
    talk.answer("chat", reply.into());
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

#[test]
fn a_program_takes_along_what_it_may_call() {
    let mut talk = Bench::new(json!({})).with_tool("look", json!({})).with_tool("ask", json!({"async": true}));
    talk.tools.extend(crate::tool::builtins());
    talk.say("compute");
    talk.assemble();
    talk.reply("", &[("c1", "execute_code", json!({"code": "1"})), ("c2", "look", json!({}))]);
    let toolbox = |index: usize| talk.operations[index].request.to_value()["context"]["toolbox"].clone();
    assert_eq!(toolbox(0)["tools"][0]["tool"]["name"], "look");
    assert!(toolbox(0)["refused"]["ask"].is_string() && toolbox(0)["refused"]["execute_code"].is_string());
    assert!(toolbox(1).is_null(), "nobody else carries it");
}

#[test]
fn so_many_programs_of_a_reply_take_along_what_they_may_call() {
    let mut talk = Bench::new(json!({})).with_tool("look", json!({}));
    talk.tools.push(Builtin::ExecuteCode.resolved());
    talk.say("compute");
    talk.assemble();
    let names: Vec<String> = (0..9).map(|number| format!("c{number}")).collect();
    let calls: Vec<_> = names.iter().map(|name| (name.as_str(), "execute_code", json!({"code": "1"}))).collect();
    talk.reply("", &calls);
    let toolboxes: Vec<_> = talk.operations.iter().map(|one| context(one)["toolbox"].clone()).collect();
    assert_eq!(toolboxes.len(), 9);
    assert!(toolboxes[..8].iter().all(|toolbox| toolbox["tools"][0]["tool"]["name"] == "look"));
    assert_eq!(toolboxes[8]["tools"], json!([]));
    assert!(toolboxes[8]["closed"].is_string());
}

#[test]
fn a_person_is_asked_about_a_program_without_what_it_may_call() {
    let mut talk = Bench::new(json!({})).with_tool("look", json!({}));
    let mut gated = Builtin::ExecuteCode.resolved();
    gated.tool.requires_approval = serde_json::from_value(json!({})).unwrap();
    talk.tools.push(gated);
    talk.say("compute");
    talk.assemble();
    talk.reply("", &[("c1", "execute_code", json!({"code": "1"}))]);
    assert_eq!(talk.operations[0].kind, OperationKind::Approval);
    assert_eq!(context(&talk.operations[0]), json!({"agent_id": "ada"}));
    talk.result("in-1.1.0.ask", json!({"approved": true, "by": "ana"}));
    assert_eq!(context(&talk.operations[1])["toolbox"]["tools"][0]["tool"]["name"], "look");
}

/// Where an operation comes from, as its request says.
fn context(operation: &Operation) -> serde_json::Value {
    operation.request.to_value()["context"].clone()
}
