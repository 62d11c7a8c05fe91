//! What steps say in the conversation of their session.

use schemas::conversation::{LogKind, LogRecord, Message, SenderType};
use schemas::limits::TEXT_BYTES_MAX;

use super::*;

/// Its step is what an input says: `{text?, data?, notes?}`. One that says `fail` cannot be done.
struct Speaker;

impl Moniker for Speaker {
    fn name(&self) -> &'static str {
        "speaker"
    }

    fn check(&self, _spec: &SessionSpec, _state: &Value) -> Vec<FieldProblem> {
        Vec::new()
    }

    fn takes_input(&self) -> bool {
        true
    }

    fn decide(&self, input: &StepInput<'_>) -> Decision {
        let Some(arrival) = input.arrival else { return Decision::AwaitInput };
        let said = &arrival.payload;
        if said["fail"] == true {
            return Decision::Fail { code: Code::StepFailed, message: "told to".into() };
        }
        let out = FrameOut {
            step: input.frame.step.clone(),
            next_step: StepToken::parse("next").unwrap(),
            state: json!({}),
            text: said["text"].as_str().map(str::to_owned),
            data: said.get("data").cloned(),
            done: false,
            notes: said["notes"].as_str().map(str::to_owned),
        };
        Decision::Finish { out, took_arrival: true }
    }
}

fn in_conversation(spec: &mut SessionSpec) {
    spec.conversation_id = ConversationId::parse("c").ok();
}

/// A step for each of these, and one commit of all.
fn steps(bench: &mut Bench, said: &[Value]) -> Commit {
    for payload in said {
        bench.post(ActionType::Input, payload.clone());
        assert_eq!(bench.turn(), Next::Step);
    }
    bench.commit().clone()
}

fn ids(log: &[LogRecord]) -> Vec<&str> {
    log.iter().map(|record| record.id.as_str()).collect()
}

#[test]
fn each_step_with_words_or_data_is_one_message_in_its_commit() {
    let mut bench = Bench::of(&Speaker, in_conversation);
    let said = [
        json!({"text": "one", "notes": "slow"}),
        json!({}),
        json!({"text": " \n"}),
        json!({"data": {"n": 1}}),
        json!({"data": null}),
        json!({"text": "both", "data": [2]}),
    ];
    let commit = steps(&mut bench, &said);
    assert_eq!(commit.entry.steps.len(), said.len(), "each has its step");
    assert!(commit.talk.turns.is_empty() && commit.talk.operations.is_empty());
    assert!(commit.follow_ups.is_empty(), "nobody is given it to answer");
    let log = &commit.talk.log;
    assert_eq!(ids(log), ["s.iteration.0", "s.iteration.3", "s.iteration.5"]);
    let (session, agent) = (SessionId::parse("s").ok(), AgentId::parse("a").ok());
    for record in log {
        assert_eq!((record.kind, &record.turn_id, record.at_ms), (LogKind::Message, &None, bench.now));
        assert_eq!((&record.session_id, &record.agent_id), (&session, &agent));
    }
    let messages: Vec<Message> = log.iter().map(|record| record.body.to().unwrap()).collect();
    let whole = json!({"message_id": "s.iteration.0", "sender_type": "agent", "role": "assistant", "agent_id": "a",
        "session_id": "s", "text": "one", "event_type": "utterance", "iteration": 0, "step_token": "start",
        "next_step_token": "next", "status": "ok", "notes": "slow"});
    assert_eq!(json!(messages[0]), whole);
    let told: Vec<_> = messages.iter().map(|one| (one.iteration, one.text.as_deref(), one.data.clone())).collect();
    let expected = [
        (Some(0), Some("one"), None),
        (Some(3), None, Some(json!({"n": 1}))),
        (Some(5), Some("both"), Some(json!([2]))),
    ];
    assert_eq!(told, expected);
    assert!(messages.iter().all(|one| one.sender_type == SenderType::Agent));
    assert!(steps(&mut bench, &[json!({})]).talk.is_empty(), "what was said is not said again");
}

#[test]
fn a_step_that_is_done_anew_says_it_under_the_same_id() {
    let said = |text: &str| {
        let mut bench = Bench::of(&Speaker, in_conversation);
        steps(&mut bench, &[json!({}), json!({ "text": text })]).talk.log
    };
    let (first, anew) = (said("hello"), said("hello"));
    assert_eq!((first.len(), &first), (1, &anew));
    assert_eq!(ids(&said("as a model says it the next time")), ids(&first));
}

#[test]
fn steps_that_fail_say_nothing() {
    let long = "x".repeat(TEXT_BYTES_MAX + 1);
    for wrong in [json!({"fail": true, "text": "x"}), json!({ "text": long })] {
        let mut bench = Bench::of(&Speaker, in_conversation);
        let commit = steps(&mut bench, &[wrong]);
        assert_eq!((bench.status(), commit.entry.steps.len()), (SessionStatus::Error, 1));
        assert!(commit.talk.is_empty(), "{:?}", commit.talk);
    }
}

#[test]
fn nothing_is_said_without_a_conversation_and_nothing_twice_by_who_talks() {
    let mut bench = Bench::of(&Speaker, |_| {});
    assert!(steps(&mut bench, &[json!({"text": "into the void"})]).talk.is_empty());
    let mut bench = Bench::of(&crate::converse::CONVERSE, in_conversation);
    let commit = steps(&mut bench, &[json!({"text": "hello"})]);
    assert!(commit.entry.steps[0].data.is_some(), "a step that would be said");
    let messages = commit.talk.log.iter().filter(|record| record.kind == LogKind::Message);
    let said: Vec<SenderType> = messages.map(|record| record.body.to::<Message>().unwrap().sender_type).collect();
    assert_eq!(said, [SenderType::User], "its input, which nobody posted: {:?}", commit.talk.log);
}
