//! `http`: a step function in any language. The frame is POSTed, the answer is the next frame.

use schemas::limits::EFFECT_MS_MAX;
use schemas::problem::{Code, FieldProblem};
use schemas::session::SessionSpec;
use serde_json::{Value, json};

use super::answer::read_frame;
use super::settings::Settings;
use super::{Decision, Moniker, StepInput};
use crate::effect::{Effect, EffectClass, Outcome};

/// Config `{url, timeout_ms?, effect?}`. An input arrives as guidance `{input}` when there is no
/// guidance of its own.
pub struct Http;

const URL_BYTES_MAX: usize = 2_048;
const TIMEOUT_MS_DEFAULT: u64 = 30_000;

struct Target {
    url: String,
    timeout_ms: u64,
    class: EffectClass,
}

impl Moniker for Http {
    fn name(&self) -> &'static str {
        "http"
    }

    fn check(&self, spec: &SessionSpec, _state: &Value) -> Vec<FieldProblem> {
        let mut settings = Settings::of(spec);
        if target(&mut settings).is_none() {
            settings.required("url", "give the address of your step function, as in http://127.0.0.1:9000/step");
        }
        settings.finish()
    }

    fn takes_input(&self) -> bool {
        true
    }

    fn decide(&self, input: &StepInput<'_>) -> Decision {
        let Some(target) = target(&mut Settings::of(input.spec)) else {
            return Decision::Fail { code: Code::StepFailed, message: "config.url is missing".to_owned() };
        };
        let mut frame = input.frame.clone();
        let mut took_arrival = false;
        if frame.guidance.is_none()
            && let Some(arrival) = input.arrival
        {
            frame.guidance = Some(json!({ "input": arrival.payload }));
            took_arrival = true;
        }
        match input.outcomes.first().map(Outcome::json) {
            None => Decision::Perform(Effect::HttpPost {
                url: target.url,
                body: json!(frame),
                timeout_ms: target.timeout_ms,
                class: target.class,
            }),
            Some(Err(failure)) => Decision::Fail { code: failure.code, message: failure.message },
            Some(Ok(answer)) => match read_frame(&frame.step, answer.clone()) {
                Ok(out) => Decision::Finish { out, took_arrival },
                Err(problem) => Decision::Fail {
                    code: Code::FrameInvalid,
                    message: format!("the step function answered with a malformed frame: {problem}"),
                },
            },
        }
    }
}

fn target(settings: &mut Settings) -> Option<Target> {
    let url = settings.text("url", URL_BYTES_MAX);
    let timeout_ms = settings.number("timeout_ms", 1, EFFECT_MS_MAX).unwrap_or(TIMEOUT_MS_DEFAULT);
    let classes = [EffectClass::Idempotent, EffectClass::AtMostOnce, EffectClass::Pure].map(|c| (c.as_str(), c));
    let class = settings.choice("effect", &classes).unwrap_or(EffectClass::Idempotent);
    let url = url?;
    let host = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    match host {
        Some(rest) if !rest.is_empty() && !rest.starts_with('/') && !url.contains(char::is_whitespace) => {
            Some(Target { url, timeout_ms, class })
        }
        _ => settings.problem("url", "must be an http:// or https:// address with a host"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effect::EffectFailure;
    use crate::moniker::tests::{arrival, decide, finish, frame, spec};

    fn at(url: &str) -> SessionSpec {
        spec("http", json!({"url": url, "effect": "at_most_once", "timeout_ms": 500}))
    }

    const URL: &str = "http://127.0.0.1:9/step";

    #[test]
    fn posts_the_frame() {
        let given = frame("a/1", json!({"x": 1}), None);
        match decide(&Http, &at(URL), &given, Some(&arrival(json!("hello"))), &[]) {
            Decision::Perform(Effect::HttpPost { url, body, timeout_ms, class }) => {
                assert_eq!((url.as_str(), timeout_ms, class), (URL, 500, EffectClass::AtMostOnce));
                assert_eq!(body, json!({"step": "a/1", "state": {"x": 1}, "guidance": {"input": "hello"}}));
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn takes_the_answer_as_frame() {
        let given = frame("a/1", json!({}), None);
        let answer = [Outcome::Ok(json!({"step": "a/1", "next_step": "4.2", "state": [1]}))];
        let (out, took) = finish(&Http, &at(URL), &given, Some(&arrival(json!({}))), &answer);
        assert_eq!((out.next_step.as_str(), out.state, took), ("4.2", json!([1]), true));
    }

    #[test]
    fn names_what_is_wrong_with_the_answer() {
        let given = frame("a/1", json!({}), Some(json!({})));
        match decide(&Http, &at(URL), &given, None, &[Outcome::Ok(json!({"state": 1}))]) {
            Decision::Fail { code: Code::FrameInvalid, message } => assert!(message.contains("next_step is missing")),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn passes_failures_on() {
        let failure = EffectFailure {
            code: Code::EffectInDoubt,
            message: "lost".to_owned(),
            retriable: false,
            may_have_happened: true,
        };
        let decision = decide(&Http, &at(URL), &frame("s", json!({}), None), None, &[Outcome::Failed(failure)]);
        assert_eq!(decision, Decision::Fail { code: Code::EffectInDoubt, message: "lost".to_owned() });
    }

    #[test]
    fn checks_its_settings() {
        let wrong = [
            (json!({}), "payload.config.url"),
            (json!({"url": "ftp://x"}), "payload.config.url"),
            (json!({"url": "http://"}), "payload.config.url"),
            (json!({"url": 5}), "payload.config.url"),
            (json!({"url": URL, "timeout_ms": 0}), "payload.config.timeout_ms"),
            (json!({"url": URL, "effect": "twice"}), "payload.config.effect"),
        ];
        for (config, field) in wrong {
            let problems = Http.check(&spec("http", config.clone()), &json!({}));
            let fields: Vec<&str> = problems.iter().map(|p| p.field.as_str()).collect();
            assert_eq!(fields, [field], "{config}");
        }
        assert!(Http.check(&at(URL), &json!({})).is_empty());
    }
}
