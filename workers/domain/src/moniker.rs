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
pub(crate) mod settings;
mod summarize;
mod tell_a_joke;

use schemas::conversation::Talk;
use schemas::frame::{FrameIn, FrameOut};
use schemas::id::{ActionId, AgentId, ConversationId, SessionId, SessionKey, TurnId};
use schemas::json::Json;
use schemas::problem::{Code, FieldProblem};
use schemas::session::{NewSession, SessionSpec};
use serde_json::Value;

use crate::effect::{Effect, Outcome};

/// What a moniker sees of a step. It never sees the iteration, the clock or the queue.
#[derive(Debug)]
pub struct StepInput<'a> {
    /// Whose step it is. Ids of what a step causes are derived from it.
    pub session: &'a SessionKey,
    pub agent: &'a AgentId,
    pub frame: &'a FrameIn,
    pub spec: &'a SessionSpec,
    /// Oldest pending arrival, if any: a step takes at most one.
    pub arrival: Option<&'a Arrival>,
    /// The answer to one of the moniker's [`Moniker::calls`]. It comes alone: without guidance and
    /// without an arrival.
    pub answer: Option<&'a Answer>,
    /// Outcomes of the effects this step asked for, in order. Empty at first.
    pub outcomes: &'a [Outcome],
}

/// Something that came for the session through the work lane.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrival {
    pub action_id: ActionId,
    pub kind: ArrivalKind,
    pub payload: Value,
    /// When the ledger took it.
    pub accepted_at_ms: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrivalKind {
    Input,
    ToolResult,
}

/// A call that runs beside the steps. The state says which calls are to be under way; the runner
/// starts those that are not, and drops those that are no longer wanted. So a crash loses nothing
/// but answers that no step had recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Unique within the session for all time: the same after a crash.
    pub key: String,
    pub effect: Effect,
}

/// What a call came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub key: String,
    pub outcome: Outcome,
}

/// What a step causes besides its frame. It leaves with the step's commit, or not at all.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Emits {
    /// The turn that the step was about, if it was about one.
    pub turn: Option<TurnId>,
    /// A time of 0 in it stands for the time of the step.
    pub talk: Talk,
    pub follow_ups: Vec<FollowUp>,
}

/// An action that a step sends to a session.
#[derive(Debug, Clone, PartialEq)]
pub struct FollowUp {
    /// Derived, so that it is the same after a crash.
    pub action_id: ActionId,
    pub kind: schemas::action::ActionType,
    pub session_id: SessionId,
    pub agent_id: Option<AgentId>,
    pub payload: Json,
    /// With a create action.
    pub session: Option<SpawnedSession>,
    /// See [`schemas::action::NewAction::seat`].
    pub seat: Option<ConversationId>,
}

/// A session that a step starts.
#[derive(Debug, Clone)]
pub struct SpawnedSession(pub NewSession);

impl PartialEq for SpawnedSession {
    fn eq(&self, other: &Self) -> bool {
        self.0.session_id == other.0.session_id && self.0.spec == other.0.spec
    }
}

/// A moniker's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// Perform this, then decide again with one outcome more. At most [`EFFECTS_PER_STEP_MAX`].
    Perform(Effect),
    /// The step is finished. `took_arrival`: it used the arrival it was shown.
    Finish { out: FrameOut, took_arrival: bool },
    /// The same, and it causes something.
    Emit { out: FrameOut, took_arrival: bool, emits: Box<Emits> },
    /// Nothing to do until an input (or guidance) arrives. No step is recorded.
    AwaitInput,
    /// Nothing to do until a dispatched operation ends. No step is recorded.
    AwaitOperation,
    /// The arrival makes no sense: it is refused, and no step is recorded.
    Refuse { code: Code, message: String },
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

    /// Whether `tool_result` actions make sense for it.
    fn takes_results(&self) -> bool {
        false
    }

    /// Whether its sessions always belong to a conversation: one of their own unless another is named. They work in
    /// turns and say by themselves what is to be said; of others, what a step says is said.
    fn talks(&self) -> bool {
        false
    }

    /// The calls that are to be under way in this state; see [`Call`].
    fn calls(&self, _spec: &SessionSpec, _state: &Value) -> Vec<Call> {
        Vec::new()
    }

    /// Keys of the calls that any of these ends before their time in this state: guidance, or `None` for a stop of the
    /// session. It is taken once they have ended, because what they have said was said, and is paid for, before it;
    /// other calls go on beside it.
    fn cuts(&self, spec: &SessionSpec, state: &Value, causes: &[Option<Value>]) -> Vec<String> {
        if causes.is_empty() {
            return Vec::new();
        }
        self.calls(spec, state).into_iter().map(|call| call.key).collect()
    }

    /// Whether guidance ends what calls are for, so that it cuts them although it is not urgent.
    fn ends_work(&self, _guidance: &Value) -> bool {
        false
    }

    /// Sessions that work for this one in this state: a pause of it is theirs as well.
    fn children(&self, _state: &Value) -> Vec<SessionId> {
        Vec::new()
    }

    /// What follows when an input is refused: whoever waits for its result is told.
    fn refused(&self, _payload: &Value, _problem: &str) -> Option<FollowUp> {
        None
    }

    /// What is still to be said when the session ends for good in this state.
    fn farewell(&self, _input: &StepInput<'_>) -> Option<Emits> {
        None
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
    &crate::converse::CONVERSE,
    &bench::Bench,
];

#[cfg(test)]
mod tests;
