//! Monikers: the step functions. Each is a pure, stateless state machine in a file of its own:
//! it is given a frame, what arrived and the outcomes so far, and answers with data (DESIGN 5).

mod answer;
mod bench;
mod count;
mod digest;
mod echo;
mod http;
pub mod model;
mod research;
mod run_step;
mod settings;
mod summarize;
mod tell_a_joke;

use schemas::frame::{FrameIn, FrameOut};
use schemas::id::ActionId;
use schemas::problem::{Code, FieldProblem};
use schemas::session::SessionSpec;
use serde_json::Value;

use crate::effect::{Effect, Outcome};

/// What a moniker sees of a step. It never sees the iteration, the clock or the queue.
#[derive(Debug)]
pub struct StepInput<'a> {
    pub frame: &'a FrameIn,
    pub spec: &'a SessionSpec,
    /// Oldest pending arrival, if any: a step takes at most one.
    pub arrival: Option<&'a Arrival>,
    /// Outcomes of the effects this step asked for, in order. Empty at first.
    pub outcomes: &'a [Outcome],
}

/// Something that came for the session through the work lane.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrival {
    pub action_id: ActionId,
    pub kind: ArrivalKind,
    pub payload: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrivalKind {
    Input,
    ToolResult,
}

/// A moniker's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// Perform this, then decide again with one outcome more. At most [`EFFECTS_PER_STEP_MAX`].
    Perform(Effect),
    /// The step is finished. `took_arrival`: it used the arrival it was shown.
    Finish { out: FrameOut, took_arrival: bool },
    /// Nothing to do until an input (or guidance) arrives. No step is recorded.
    AwaitInput,
    /// The step cannot be done: error status, error step; an operator may resume (SPEC K-39, K-45).
    Fail { code: Code, message: String },
}

/// Bound on the decide-perform rounds of one step.
pub const EFFECTS_PER_STEP_MAX: usize = 32;

/// One kind of agent loop. All methods are pure.
pub trait Moniker: Send + Sync {
    fn name(&self) -> &'static str;

    /// Checks `task`, `config` and the initial state of a create action; fields are named
    /// `payload.config.…`, `payload.task`, `payload.state.…`.
    fn check(&self, spec: &SessionSpec, state: &Value) -> Vec<FieldProblem>;

    /// The state of the first step, from the state in the create payload (an object, `{}` if absent).
    fn initial_state(&self, _spec: &SessionSpec, given: Value) -> Value {
        given
    }

    /// Whether `done` ends the session unless the create payload says otherwise.
    fn stops_on_done(&self) -> bool {
        true
    }

    /// Whether `input` actions make sense for it.
    fn takes_input(&self) -> bool {
        false
    }

    /// Whether this decision may keep a processor busy for more than some milliseconds. What it says
    /// is the same either way; it is then made where nothing else has to wait for it.
    fn is_heavy(&self, _input: &StepInput<'_>) -> bool {
        false
    }

    /// Default pause between steps.
    fn loop_interval_ms(&self) -> u64 {
        0
    }

    fn decide(&self, input: &StepInput<'_>) -> Decision;
}

/// The monikers of this build, by name.
pub fn find(name: &str) -> Option<&'static dyn Moniker> {
    ALL.iter().copied().find(|moniker| moniker.name() == name)
}

/// All monikers, in the order they are documented.
pub const ALL: &[&dyn Moniker] = &[
    &run_step::RUN_STEP,
    &tell_a_joke::TELL_A_JOKE,
    &summarize::SUMMARIZE,
    &research::RESEARCH,
    &digest::Digest,
    &http::Http,
    &count::Count,
    &echo::Echo,
    &bench::Bench,
];

#[cfg(test)]
mod tests;
