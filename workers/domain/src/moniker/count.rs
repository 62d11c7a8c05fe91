//! `count`: counts up. The smallest loop there is, for first tries, tests and drills.

use schemas::frame::{FrameOut, StepToken};
use schemas::problem::{Code, FieldProblem};
use schemas::session::SessionSpec;
use serde_json::{Map, Value};

use super::settings::{Settings, brief};
use super::{Decision, Moniker, StepInput};

/// Config `{until?}`; state `{n}`, other fields are kept; text = n; guidance `{set}` gives the
/// step that takes it that very n.
pub struct Count;

impl Moniker for Count {
    fn name(&self) -> &'static str {
        "count"
    }

    fn check(&self, spec: &SessionSpec, state: &Value) -> Vec<FieldProblem> {
        let mut settings = Settings::of(spec);
        until(&mut settings);
        let mut problems = settings.finish();
        if let Some(n) = state.get("n").filter(|n| !n.is_i64()) {
            problems.push(FieldProblem::new("payload.state.n", format!("must be a whole number, not {}", brief(n))));
        }
        problems
    }

    fn decide(&self, input: &StepInput<'_>) -> Decision {
        let mut state = match &input.frame.state {
            Value::Object(map) => map.clone(),
            _ => Map::new(),
        };
        let before = match state.get("n") {
            None => 0,
            Some(n) => match n.as_i64() {
                Some(n) => n,
                None => {
                    let message = format!("state.n must be a whole number, not {}", brief(n));
                    return Decision::Fail { code: Code::StepFailed, message };
                }
            },
        };
        let set = input.frame.guidance.as_ref().and_then(|guidance| guidance.get("set"));
        let n = match set {
            None => before.saturating_add(1),
            Some(set) => set.as_i64().unwrap_or_else(|| before.saturating_add(1)),
        };
        let notes = set
            .filter(|set| !set.is_i64())
            .map(|set| format!("guidance.set must be a whole number, not {}; ignored", brief(set)));
        state.insert("n".to_owned(), n.into());
        let until = until(&mut Settings::of(input.spec));
        let out = FrameOut {
            step: input.frame.step.clone(),
            next_step: token(n),
            state: Value::Object(state),
            text: Some(n.to_string()),
            data: None,
            done: until.is_some_and(|until| n >= until),
            notes,
        };
        Decision::Finish { out, took_arrival: false }
    }
}

fn until(settings: &mut Settings) -> Option<i64> {
    settings.number("until", 1, i64::MAX as u64).and_then(|until| i64::try_from(until).ok())
}

fn token(n: i64) -> StepToken {
    StepToken::parse(&format!("n/{n}")).unwrap_or_else(|_| StepToken::start())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::moniker::tests::{finish, frame, spec};

    fn run(config: Value, state: Value, guidance: Option<Value>) -> FrameOut {
        finish(&Count, &spec("count", config), &frame("start", state, guidance), None, &[]).0
    }

    #[test]
    fn counts_up_and_keeps_other_fields() {
        let out = run(json!({}), json!({"n": 4, "who": "me"}), None);
        assert_eq!(out.state, json!({"n": 5, "who": "me"}));
        assert_eq!((out.text.as_deref(), out.next_step.as_str(), out.done), (Some("5"), "n/5", false));
    }

    #[test]
    fn is_done_at_the_goal() {
        assert!(!run(json!({"until": 2}), json!({}), None).done);
        assert!(run(json!({"until": 2}), json!({"n": 1}), None).done);
    }

    #[test]
    fn guidance_sets_n_and_nonsense_is_noted() {
        assert_eq!(run(json!({}), json!({"n": 1}), Some(json!({"set": 40}))).state["n"], 40);
        let out = run(json!({}), json!({"n": 1}), Some(json!({"set": "many"})));
        assert_eq!(out.state["n"], 2);
        assert!(out.notes.is_some_and(|notes| notes.contains("guidance.set")));
    }

    #[test]
    fn refuses_wrong_settings() {
        let problems = Count.check(&spec("count", json!({"until": 0, "untl": 1})), &json!({"n": "x"}));
        let fields: Vec<&str> = problems.iter().map(|p| p.field.as_str()).collect();
        assert_eq!(fields, ["payload.config.until", "payload.config.untl", "payload.state.n"]);
    }

    proptest! {
        #[test]
        fn takes_exactly_as_many_steps_as_asked(start in -50i64..50, more in 1u64..60) {
            let until = start + more as i64;
            prop_assume!(until >= 1);
            let (mut state, mut steps) = (json!({"n": start}), 0u64);
            loop {
                let out = run(json!({"until": until}), state, None);
                steps += 1;
                state = out.state;
                if out.done { break }
            }
            prop_assert_eq!(steps, more);
        }
    }
}
