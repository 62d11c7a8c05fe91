//! What a model has said, taken by a step when the end of its turn was accepted meanwhile.

use schemas::conversation::{LogKind, TurnStatus};
use schemas::definition::{AgentConstraints, Budgets, EffectClass};

use super::*;
use crate::chat::{ChatReply, ChatRequest, Finish, ModelTarget, Part, ToolCall};
use crate::converse::{Assembly, CONVERSE, Limits, Reply};
use crate::effect::Outcome;
use crate::moniker::Answer;
use crate::tool::{self, ResolvedTool};

fn pay() -> ResolvedTool {
    let tool = json!({"id": "pay", "name": "pay", "description": "d", "library_id": "l",
        "input_schema": {"type": "object"}, "target_type": "task", "target_id": "t"});
    let target = json!({"type": "action", "target_id": "t", "version": 1, "action_id": "a", "action_version": 1,
        "kind": "mock", "operation": "return", "effect_class": EffectClass::Pure, "execution": {}});
    serde_json::from_value(json!({"tool": tool, "version": 1, "target": target})).unwrap()
}

fn context() -> Assembly {
    let tools = vec![pay()];
    Assembly {
        agent_name: "Ada".to_owned(),
        target: ModelTarget::Default,
        summariser: None,
        request: ChatRequest { tools: tool::specs(&tools), ..ChatRequest::ask("be brief", "pay") },
        tools,
        constraints: AgentConstraints::default(),
        project_ids: Vec::new(),
        limits: Limits { max_rounds: 20, budgets: Budgets::default(), context: None, per_call: false },
        recent_turns: Vec::new(),
        summary: None,
        summary_at: 1,
        history: Vec::new(),
    }
}

/// A whole reply, which calls for the tool.
fn reply() -> Reply {
    let (id, name) = ("c1".to_owned(), "pay".to_owned());
    let call = ToolCall { id, name, input: json!({}), invalid: None, signature: None };
    let said = ChatReply {
        parts: vec![Part::text("I pay."), Part::ToolCall(call)],
        finish: Finish::ToolUse,
        raw_finish: None,
        usage: None,
        provider: "scripted".to_owned(),
        model: "script".to_owned(),
        message_id: None,
        request_id: None,
        raw: json!({}),
    };
    Reply { reply: Some(said), ..Reply::blank(&context(), 0, 0) }
}

/// A step that takes what the call under way came to.
fn take(bench: &mut Bench, outcome: Outcome) {
    assert_eq!(bench.boundary(), Next::Step);
    let calls = bench.session.calls();
    let [call] = calls.as_slice() else { panic!("{calls:?}") };
    let answer = Answer { key: call.key.clone(), outcome };
    let start = bench.session.begin_answer_step(answer, bench.now);
    let decision = bench.session.decider().decide(&start, &[]);
    let Decision::Emit { out, took_arrival, emits } = decision else { panic!("{decision:?}") };
    bench.session.finish_emitting(start, out, took_arrival, *emits, bench.now);
}

#[test]
fn a_whole_reply_of_a_turn_whose_end_was_accepted_is_recorded_and_calls_for_nothing() {
    let cancel = |turn: &str| Some(json!({"guidance": {"cancel_turn": turn}}));
    let note = Some(json!({"guidance": "in French", "mode": "now"}));
    for (accepted, operations) in [(None, 1), (note, 1), (cancel("another"), 1), (cancel("work-2"), 0)] {
        let mut bench = Bench::of(&CONVERSE, |spec| spec.conversation_id = ConversationId::parse("c").ok());
        bench.post(ActionType::Input, json!({"text": "pay"}));
        assert_eq!(bench.turn(), Next::Step);
        take(&mut bench, context().into());
        // The reply is there, and no step has taken either of the two.
        if let Some(payload) = &accepted {
            bench.post(ActionType::Interrupt, payload.clone());
        }
        take(&mut bench, reply().into());
        let talk = bench.commit().talk.clone();
        let moves = talk.log.iter().filter(|record| record.kind == LogKind::Move).count();
        assert_eq!((moves, talk.operations.len()), (1, operations), "{accepted:?}");
        if operations == 0 {
            assert_eq!(bench.turn(), Next::Step);
            let talk = bench.commit().talk.clone();
            let ended: Vec<_> = talk.turns.iter().map(|turn| (turn.status, turn.cancelled, turn.moves)).collect();
            assert_eq!((ended, talk.operations.len()), (vec![(TurnStatus::Failed, true, 1)], 0));
        }
    }
}
