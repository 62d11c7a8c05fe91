//! `echo`: one step per input, its text is the input's text. Waits otherwise.

use schemas::frame::{FrameOut, StepToken};
use schemas::problem::FieldProblem;
use schemas::session::SessionSpec;
use serde_json::{Map, Value};

use super::settings::{Settings, brief};
use super::{Decision, Moniker, StepInput};

/// State `{echoed}` counts; other fields are kept. Guidance that comes without an input is echoed
/// in a step of its own.
pub struct Echo;

impl Moniker for Echo {
    fn name(&self) -> &'static str {
        "echo"
    }

    fn check(&self, spec: &SessionSpec, state: &Value) -> Vec<FieldProblem> {
        let mut problems = Settings::of(spec).finish();
        if let Some(echoed) = state.get("echoed").filter(|echoed| !echoed.is_u64()) {
            let message = format!("must be a whole number from 0, not {}", brief(echoed));
            problems.push(FieldProblem::new("payload.state.echoed", message));
        }
        problems
    }

    fn stops_on_done(&self) -> bool {
        false
    }

    fn takes_input(&self) -> bool {
        true
    }

    fn decide(&self, input: &StepInput<'_>) -> Decision {
        let heard = match (input.arrival, &input.frame.guidance) {
            (Some(arrival), _) => &arrival.payload,
            (None, Some(guidance)) => guidance,
            (None, None) => return Decision::AwaitInput,
        };
        let text = heard.as_str().or_else(|| heard.get("text").and_then(Value::as_str)).map(str::to_owned);
        let mut state = match &input.frame.state {
            Value::Object(map) => map.clone(),
            _ => Map::new(),
        };
        let echoed = state.get("echoed").and_then(Value::as_u64).unwrap_or(0).saturating_add(1);
        state.insert("echoed".to_owned(), echoed.into());
        let out = FrameOut {
            step: input.frame.step.clone(),
            next_step: StepToken::parse(&format!("echo/{echoed}")).unwrap_or_else(|_| StepToken::start()),
            state: Value::Object(state),
            data: text.is_none().then(|| heard.clone()),
            text,
            done: false,
            notes: None,
        };
        Decision::Finish { out, took_arrival: input.arrival.is_some() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::moniker::tests::{arrival, decide, finish, frame, spec};

    #[test]
    fn waits_without_input() {
        let decision = decide(&Echo, &spec("echo", json!({})), &frame("start", json!({}), None), None, &[]);
        assert_eq!(decision, Decision::AwaitInput);
    }

    #[test]
    fn says_the_text_of_the_input() {
        let (frame, spec) = (frame("start", json!({"a": 1}), None), spec("echo", json!({})));
        let (out, took) = finish(&Echo, &spec, &frame, Some(&arrival(json!({"text": "hi", "x": 1}))), &[]);
        assert!(took);
        assert_eq!((out.text.as_deref(), &out.data, out.next_step.as_str()), (Some("hi"), &None, "echo/1"));
        assert_eq!(out.state, json!({"a": 1, "echoed": 1}));
    }

    #[test]
    fn gives_back_other_payloads_as_data() {
        let (frame, spec) = (frame("start", json!({}), None), spec("echo", json!({})));
        let (out, _) = finish(&Echo, &spec, &frame, Some(&arrival(json!({"text": 5}))), &[]);
        assert_eq!((out.text, out.data), (None, Some(json!({"text": 5}))));
    }

    #[test]
    fn guidance_alone_is_a_step_that_takes_no_arrival() {
        let (frame, spec) = (frame("echo/1", json!({}), Some(json!({"text": "psst"}))), spec("echo", json!({})));
        let (out, took) = finish(&Echo, &spec, &frame, None, &[]);
        assert_eq!((out.text.as_deref(), took), (Some("psst"), false));
    }
}
