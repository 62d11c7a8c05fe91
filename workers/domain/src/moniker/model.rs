//! The generic model step (SPEC Q-MON-12): task and frame become a prompt, the model's answer
//! becomes the next frame. `run_step` and its presets are values of one type.

pub mod asking;
mod frame;
pub mod prompt;

use schemas::frame::FrameIn;
use schemas::problem::{Code, FieldProblem};
use schemas::session::{ModelUse, SessionSpec};
use serde_json::{Value, json};

use self::frame::read_answer;
use super::settings::{Settings, brief, clip};
use super::{Decision, Moniker, StepInput};
use crate::effect::{Effect, ModelRequest, Outcome};
use crate::spending::Spent;

/// Most output tokens of one step.
pub const ANSWER_TOKENS_MAX: u32 = 4_096;
/// Longest name of a model profile.
const PROFILE_BYTES_MAX: usize = 128;

/// A kind of model-backed loop. What a preset fixes is in its fields.
#[derive(Debug)]
pub struct ModelStep {
    pub name: &'static str,
    /// The preset's own task; without one, the create payload must bring it.
    pub task: Option<&'static str>,
    /// Presets work on `state.subject`; guidance `{subject}` changes it, whatever the model answers.
    pub subject: Subject,
    pub stops_on_done: bool,
    pub loop_interval_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// The state belongs to the task alone.
    Unused,
    /// Taken when nothing else is given.
    Default(&'static str),
    /// The create payload must say what it is about: `state.subject`, `state.text` or `task`.
    Needed,
}

impl Moniker for ModelStep {
    fn name(&self) -> &'static str {
        self.name
    }

    fn check(&self, spec: &SessionSpec, state: &Value) -> Vec<FieldProblem> {
        let mut settings = Settings::of(spec);
        settings.text("model_profile", PROFILE_BYTES_MAX);
        let mut problems = settings.finish();
        let task_given = spec.task.as_deref().is_some_and(|task| !task.trim().is_empty());
        if self.task.is_none() && !task_given {
            problems.push(FieldProblem::new("payload.task", "is missing: say what each step is to do"));
        }
        if self.subject == Subject::Unused {
            return problems;
        }
        if let Some(subject) = state.get("subject").filter(|subject| subject_of(subject).is_none()) {
            let message = format!("must be a text that is not empty, not {}", brief(subject));
            problems.push(FieldProblem::new("payload.state.subject", message));
        } else if self.subject == Subject::Needed && !task_given && !names_matter(state) {
            let message =
                format!("is missing: name the subject of {}, or give payload.state.text or payload.task", self.name);
            problems.push(FieldProblem::new("payload.state.subject", message));
        }
        problems
    }

    fn initial_state(&self, _spec: &SessionSpec, mut given: Value) -> Value {
        if let Subject::Default(subject) = self.subject
            && let Value::Object(map) = &mut given
        {
            map.entry("subject").or_insert_with(|| subject.into());
        }
        given
    }

    fn stops_on_done(&self) -> bool {
        self.stops_on_done
    }

    fn takes_input(&self) -> bool {
        true
    }

    fn loop_interval_ms(&self) -> u64 {
        self.loop_interval_ms
    }

    fn decide(&self, input: &StepInput<'_>) -> Decision {
        let (frame, took_arrival) = self.effective(input);
        let ask = |problem: Option<(&str, &str)>| {
            Decision::Perform(Effect::Model(ModelRequest {
                agent: input.agent.clone(),
                conversation: input.spec.conversation_id.clone(),
                profile: Settings::of(input.spec).text("model_profile", PROFILE_BYTES_MAX),
                system: prompt::SYSTEM.to_owned(),
                prompt: prompt::build(self.task, input.spec.task.as_deref(), &frame, problem),
                max_tokens: ANSWER_TOKENS_MAX,
                json: true,
                used: ModelUse::default(),
                since_ms: 0,
                unrecorded: Spent::default(),
            }))
        };
        let text = match input.outcomes.last().map(Outcome::json) {
            None => return ask(None),
            Some(Err(failure)) => return Decision::Fail { code: failure.code, message: failure.message },
            Some(Ok(answer)) => answer.get("text").and_then(Value::as_str).unwrap_or(""),
        };
        match read_answer(&frame, text) {
            Ok(mut out) => {
                self.keep_subject(&frame.state, &mut out.state);
                Decision::Finish { out, took_arrival }
            }
            Err(problem) if input.outcomes.len() < ASKS_MAX => ask(Some((problem.as_str(), text))),
            Err(problem) => Decision::Fail {
                code: Code::FrameInvalid,
                message: format!(
                    "the model answered {ASKS_MAX} times without a valid frame; last problem: {problem}; the answer \
                     begins with {:?}",
                    clip(text.trim(), 200)
                ),
            },
        }
    }
}

/// A first question and one more with the problem of the first answer.
const ASKS_MAX: usize = 2;

impl ModelStep {
    /// The frame the model is shown: an input stands in for guidance when there is none, and a
    /// new subject is in the state before the model sees it.
    fn effective(&self, input: &StepInput<'_>) -> (FrameIn, bool) {
        let mut frame = input.frame.clone();
        let took_arrival = match (&frame.guidance, input.arrival) {
            (None, Some(arrival)) => {
                frame.guidance = Some(json!({ "input": arrival.payload }));
                true
            }
            _ => false,
        };
        if self.subject != Subject::Unused
            && let Some(subject) = frame.guidance.as_ref().and_then(wished_subject)
        {
            if !frame.state.is_object() {
                frame.state = json!({});
            }
            frame.state["subject"] = subject.into();
        }
        (frame, took_arrival)
    }

    /// The subject is the caller's: a model can neither change nor lose it.
    fn keep_subject(&self, before: &Value, after: &mut Value) {
        if self.subject != Subject::Unused
            && let Some(subject) = before.get("subject")
            && let Value::Object(after) = after
        {
            after.insert("subject".to_owned(), subject.clone());
        }
    }
}

fn wished_subject(guidance: &Value) -> Option<String> {
    let direct = guidance.get("subject").and_then(subject_of);
    direct.or_else(|| guidance.get("input")?.get("subject").and_then(subject_of)).map(str::to_owned)
}

fn subject_of(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.trim().is_empty())
}

fn names_matter(state: &Value) -> bool {
    ["subject", "text"].iter().any(|key| state.get(key).and_then(subject_of).is_some())
}

#[cfg(test)]
mod tests;
