//! `bench`: synthetic load for measurements. Each step makes a new state and a text of given
//! sizes, derived with SHA-256 from the step before, in a few microseconds. It does no real work.

use std::fmt::Write;

use schemas::frame::{FrameOut, StepToken};
use schemas::limits::{STATE_BYTES_MAX, TEXT_BYTES_MAX};
use schemas::problem::FieldProblem;
use schemas::session::SessionSpec;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::settings::Settings;
use super::{Decision, Moniker, StepInput};

/// Config `{steps, state_bytes, text_bytes}`; `state.seed` tells sessions apart.
pub struct Bench;

const STEPS_MAX: u64 = 1_000_000_000;
/// Sizes of the comparison job: about 475 B of state, 200 B of text, 50 steps.
const STEPS_DEFAULT: u64 = 50;
const STATE_BYTES_DEFAULT: u64 = 475;
const TEXT_BYTES_DEFAULT: u64 = 200;
/// Rounds of hashing per step, as in the comparison job; longer texts repeat the digits.
const ROUNDS: usize = 4;

struct Load {
    steps: u64,
    state_bytes: usize,
    text_bytes: usize,
}

impl Moniker for Bench {
    fn name(&self) -> &'static str {
        "bench"
    }

    fn check(&self, spec: &SessionSpec, _state: &Value) -> Vec<FieldProblem> {
        let mut settings = Settings::of(spec);
        load(&mut settings);
        settings.finish()
    }

    fn decide(&self, input: &StepInput<'_>) -> Decision {
        let load = load(&mut Settings::of(input.spec));
        let before = &input.frame.state;
        let seed = before.get("seed").and_then(Value::as_str).unwrap_or("");
        let n = before.get("n").and_then(Value::as_u64).unwrap_or(0);
        let digits = digits(seed, n);
        let n = n.saturating_add(1);
        let mut state = Map::new();
        state.insert("seed".to_owned(), seed.into());
        state.insert("n".to_owned(), n.into());
        state.insert("ok".to_owned(), true.into());
        state.insert("plan".to_owned(), vec!["inspect", "measure", "edit", "test", "report"].into());
        // Keys, quotes and commas of the state around the memo.
        let frame_bytes = 84 + seed.len();
        state.insert("memo".to_owned(), fill(&digits, load.state_bytes.saturating_sub(frame_bytes)).into());
        let out = FrameOut {
            step: input.frame.step.clone(),
            next_step: StepToken::parse(&format!("bench/{n}")).unwrap_or_else(|_| StepToken::start()),
            state: Value::Object(state),
            text: Some(fill(&digits, load.text_bytes)),
            data: None,
            done: n >= load.steps,
            notes: None,
        };
        Decision::Finish { out, took_arrival: false }
    }
}

fn load(settings: &mut Settings) -> Load {
    let mut size = |key, max: usize, default| settings.number(key, 0, max as u64).unwrap_or(default) as usize;
    let state_bytes = size("state_bytes", STATE_BYTES_MAX / 2, STATE_BYTES_DEFAULT);
    let text_bytes = size("text_bytes", TEXT_BYTES_MAX / 2, TEXT_BYTES_DEFAULT);
    let steps = settings.number("steps", 1, STEPS_MAX).unwrap_or(STEPS_DEFAULT);
    Load { steps, state_bytes, text_bytes }
}

fn digits(seed: &str, n: u64) -> String {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut digits = String::with_capacity(ROUNDS * 64);
    let mut source = String::with_capacity(seed.len() + 24);
    for round in 0..ROUNDS {
        source.clear();
        // Writing into a String cannot fail.
        let _ = write!(source, "{seed}:{n}:{round}");
        for byte in Sha256::digest(source.as_bytes()) {
            digits.push(HEX[usize::from(byte >> 4)] as char);
            digits.push(HEX[usize::from(byte & 15)] as char);
        }
    }
    digits
}

fn fill(digits: &str, bytes: usize) -> String {
    let mut text = digits.repeat(bytes.div_ceil(digits.len()));
    text.truncate(bytes);
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::moniker::tests::{finish, frame, spec};

    fn step(config: &Value, state: Value) -> FrameOut {
        finish(&Bench, &spec("bench", config.clone()), &frame("start", state, None), None, &[]).0
    }

    #[test]
    fn is_deterministic_and_differs_by_seed_and_step() {
        let config = json!({"steps": 2});
        let first = step(&config, json!({"seed": "a"}));
        assert_eq!(first, step(&config, json!({"seed": "a"})));
        assert_ne!(first.text, step(&config, json!({"seed": "b"})).text);
        let second = step(&config, first.state.clone());
        assert_ne!(first.text, second.text);
        assert_eq!((first.done, second.done), (false, true));
    }

    #[test]
    fn checks_its_bounds() {
        let problems = Bench.check(&spec("bench", json!({"steps": 0, "text_bytes": 1u64 << 40})), &json!({}));
        let fields: Vec<&str> = problems.iter().map(|p| p.field.as_str()).collect();
        assert_eq!(fields, ["payload.config.text_bytes", "payload.config.steps"]);
    }

    proptest! {
        #[test]
        fn sizes_are_as_asked(state_bytes in 120usize..5_000, text_bytes in 0usize..5_000) {
            let out = step(&json!({"state_bytes": state_bytes, "text_bytes": text_bytes}), json!({"seed": "s"}));
            prop_assert_eq!(out.text.expect("a text").len(), text_bytes);
            let bytes = out.state.to_string().len();
            prop_assert!(bytes.abs_diff(state_bytes) <= 12, "{} for {}", bytes, state_bytes);
        }
    }
}
