//! Model steps: prompts, answers, and answers that are no frames.

use proptest::prelude::*;
use schemas::frame::FrameOut;
use serde_json::json;

use super::*;
use crate::effect::EffectFailure;
use crate::moniker::research::RESEARCH;
use crate::moniker::run_step::RUN_STEP;
use crate::moniker::summarize::SUMMARIZE;
use crate::moniker::tell_a_joke::TELL_A_JOKE;
use crate::moniker::tests::{arrival, decide, finish, frame, spec};

fn answer(text: impl ToString) -> Outcome {
    Outcome::Ok(json!({"text": text.to_string(), "provider": "scripted", "model": "m"}))
}

fn asked(decision: Decision) -> ModelRequest {
    match decision {
        Decision::Perform(Effect::Model(request)) => request,
        other => panic!("expected a model request, got {other:?}"),
    }
}

fn with_task(task: &str) -> SessionSpec {
    SessionSpec { task: Some(task.to_owned()), ..spec("run_step", json!({"model_profile": "fast"})) }
}

fn joke(guidance: Option<Value>, reply: Value) -> FrameOut {
    let given = frame("start", json!({"subject": "cats", "told": 1}), guidance);
    finish(&TELL_A_JOKE, &spec("tell_a_joke", json!({})), &given, None, &[answer(reply)]).0
}

#[test]
fn asks_with_task_frame_and_profile() {
    let given = frame("4.2", json!({"a": 1}), Some(json!({"tone": "dry"})));
    let request = asked(decide(&RUN_STEP, &with_task("Count the sheep."), &given, None, &[]));
    assert_eq!(request.profile.as_deref(), Some("fast"));
    assert!(request.json && request.prompt.contains("Count the sheep."));
    let shown = prompt::frame_of(&request.prompt).expect("a frame");
    assert_eq!(shown, json!({"step": "4.2", "state": {"a": 1}, "guidance": {"tone": "dry"}}));
}

#[test]
fn a_frame_becomes_the_step_verbatim() {
    let reply = json!({"step": "other", "next_step": "review/1", "state": {"b": 2}, "text": "t", "data": {"x": 1},
        "done": true, "notes": "n"});
    let (out, _) = finish(&RUN_STEP, &with_task("t"), &frame("4.2", json!({}), None), None, &[answer(reply)]);
    let expected = json!({"step": "4.2", "next_step": "review/1", "state": {"b": 2}, "text": "t", "data": {"x": 1},
        "done": true, "notes": "n"});
    assert_eq!(serde_json::to_value(out).expect("json"), expected);
}

#[test]
fn missing_fields_are_completed() {
    let given = frame("step/3", json!({"a": 1}), None);
    let reply = json!({"text": 42, "done": "false", "notes": ["x"]});
    let (out, _) = finish(&RUN_STEP, &with_task("t"), &given, None, &[answer(reply)]);
    assert_eq!(out.next_step.as_str(), "step/4");
    assert_eq!((out.state, out.text.as_deref(), out.done), (json!({"a": 1}), Some("42"), false));
}

#[test]
fn a_malformed_answer_is_asked_again_once_then_fails() {
    let given = frame("start", json!({}), None);
    let first = answer("I would rather not.");
    let request = asked(decide(&RUN_STEP, &with_task("t"), &given, None, std::slice::from_ref(&first)));
    assert!(request.prompt.contains("holds no JSON object") && request.prompt.contains("I would rather not."));
    assert!(prompt::frame_of(&request.prompt).is_some());
    let (out, _) = finish(&RUN_STEP, &with_task("t"), &given, None, &[first.clone(), answer("{\"text\": \"ok\"}")]);
    assert_eq!(out.text.as_deref(), Some("ok"));
    let cut = answer("{\"text\": \"o");
    match decide(&RUN_STEP, &with_task("t"), &given, None, &[first, cut]) {
        Decision::Fail { code: Code::FrameInvalid, message } => {
            assert!(message.contains("not valid JSON"), "{message}")
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_providers_failure_is_passed_on() {
    let failure = EffectFailure {
        code: Code::ProviderFailed,
        message: "overloaded".to_owned(),
        retriable: true,
        may_have_happened: false,
    };
    let outcome = [Outcome::Failed(failure)];
    let decision = decide(&RUN_STEP, &with_task("t"), &frame("start", json!({}), None), None, &outcome);
    assert_eq!(decision, Decision::Fail { code: Code::ProviderFailed, message: "overloaded".to_owned() });
}

#[test]
fn guidance_changes_the_subject_whatever_the_model_says() {
    let out = joke(Some(json!({"subject": "dogs"})), json!({"text": "x", "state": {"subject": "cats"}}));
    assert_eq!(out.state["subject"], "dogs");
    let out = joke(None, json!({"text": "x", "state": {"told": 2}}));
    assert_eq!(out.state, json!({"told": 2, "subject": "cats"}));
    let out = joke(Some(json!({"subject": 7})), json!({"text": "x"}));
    assert_eq!(out.state["subject"], "cats");
}

#[test]
fn the_model_sees_the_new_subject_at_once() {
    let given = frame("start", json!({"subject": "cats"}), Some(json!({"subject": "dogs"})));
    let request = asked(decide(&TELL_A_JOKE, &spec("tell_a_joke", json!({})), &given, None, &[]));
    assert_eq!(prompt::frame_of(&request.prompt).expect("a frame")["state"]["subject"], "dogs");
}

#[test]
fn an_input_stands_in_for_guidance() {
    let input = arrival(json!({"subject": "owls"}));
    let given = frame("start", json!({"subject": "cats"}), None);
    let reply = [answer(json!({"text": "x"}))];
    let (out, took) = finish(&TELL_A_JOKE, &spec("tell_a_joke", json!({})), &given, Some(&input), &reply);
    assert!(took);
    assert_eq!(out.state["subject"], "owls");
    let guided = frame("start", json!({"subject": "cats"}), Some(json!({"subject": "dogs"})));
    let (out, took) = finish(&TELL_A_JOKE, &spec("tell_a_joke", json!({})), &guided, Some(&input), &reply);
    assert!(!took, "guidance first; the input waits for the next step");
    assert_eq!(out.state["subject"], "dogs");
}

#[test]
fn presets_say_what_is_missing() {
    let fields = |moniker: &ModelStep, spec: &SessionSpec, state: Value| -> Vec<String> {
        moniker.check(spec, &state).into_iter().map(|p| p.field).collect()
    };
    let plain = spec("x", json!({}));
    assert_eq!(fields(&RUN_STEP, &plain, json!({})), ["payload.task"]);
    assert_eq!(fields(&SUMMARIZE, &plain, json!({})), ["payload.state.subject"]);
    assert_eq!(fields(&RESEARCH, &plain, json!({"subject": " "})), ["payload.state.subject"]);
    assert!(fields(&SUMMARIZE, &plain, json!({"text": "long"})).is_empty());
    assert!(fields(&RESEARCH, &with_task("about owls"), json!({})).is_empty());
    assert!(fields(&TELL_A_JOKE, &plain, json!({})).is_empty());
    assert_eq!(TELL_A_JOKE.initial_state(&plain, json!({})), json!({"subject": "cats"}));
    assert_eq!(fields(&TELL_A_JOKE, &plain, json!({"subject": 3})), ["payload.state.subject"]);
}

proptest! {
    #[test]
    fn the_frame_survives_the_prompt(task in ".{0,80}", text in ".{0,80}", problem in prop::option::of(".{0,40}")) {
        let given = frame("start", json!({"text": text, "mark": "\n\n# Frame\n"}), None);
        let rejected = problem.as_deref().map(|problem| (problem, "{}"));
        let prompt = prompt::build(Some("preset"), Some(&task), &given, rejected);
        let shown = prompt::frame_of(&prompt).expect("a frame");
        prop_assert_eq!(&shown["state"], &given.state);
    }
}
