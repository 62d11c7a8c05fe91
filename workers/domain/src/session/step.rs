//! One step: what it is given, and what it leaves behind.

use std::sync::Arc;

use schemas::action::{Action, ActionType};
use schemas::frame::{FrameIn, FrameOut};
use schemas::id::{AgentId, SessionKey, TurnId};
use schemas::json::Json;
use schemas::limits::{DATA_BYTES_MAX, ERROR_CHARS_MAX, STATE_BYTES_MAX, TEXT_BYTES_MAX};
use schemas::problem::Code;
use schemas::record::{StepRecord, StepStatus};
use schemas::session::{Cause, SessionSpec, SessionStatus, StopReason};
use serde_json::{Value, json};

use super::Session;
use crate::converse::Assembly;
use crate::effect::Outcome;
use crate::moniker::{Answer, Arrival, ArrivalKind, Decision, Emits, Moniker, StepInput};

/// A step that has begun. The frame holds the session's state while it runs.
#[derive(Debug)]
pub struct StepStart {
    pub frame: FrameIn,
    pub iteration: u64,
    pub started_ms: i64,
    guidance_seq: Option<u64>,
    guidance: Option<Json>,
    arrival: Option<Arrival>,
    arrival_seq: Option<u64>,
    answer: Option<Answer>,
    /// Known once it is decided.
    turn: Option<TurnId>,
}

impl StepStart {
    /// Whether it takes the answer of a call, and so has not looked at what has arrived.
    pub fn is_answer(&self) -> bool {
        self.answer.is_some()
    }

    /// Whether it is given an input.
    pub fn has_input(&self) -> bool {
        self.arrival.as_ref().is_some_and(|arrival| arrival.kind == ArrivalKind::Input)
    }

    /// The context of a turn that it was given.
    pub fn context(&self) -> Option<&Arc<Assembly>> {
        self.answer.as_ref()?.outcome.assembly().ok()
    }
}

/// Asks the moniker of a session, apart from the session: a decision may be made elsewhere.
pub struct Decider {
    session: SessionKey,
    agent: AgentId,
    moniker: &'static dyn Moniker,
    spec: Arc<SessionSpec>,
}

impl Decider {
    /// See [`Moniker::decide`]; with the outcomes so far.
    pub fn decide(&self, start: &StepStart, outcomes: &[Outcome]) -> Decision {
        self.moniker.decide(&self.input(start, outcomes))
    }

    /// See [`Moniker::is_heavy`].
    pub fn is_heavy(&self, start: &StepStart, outcomes: &[Outcome]) -> bool {
        self.moniker.is_heavy(&self.input(start, outcomes))
    }

    fn input<'i>(&'i self, start: &'i StepStart, outcomes: &'i [Outcome]) -> StepInput<'i> {
        StepInput {
            session: &self.session,
            agent: &self.agent,
            frame: &start.frame,
            spec: &self.spec,
            arrival: start.arrival.as_ref(),
            answer: start.answer.as_ref(),
            outcomes,
        }
    }
}

/// How a step ended, for the caller's log and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepTaken {
    Ok,
    Failed,
}

impl Session {
    /// Starts a step with the oldest guidance and the oldest work, both left in their lanes until
    /// the step is finished.
    pub fn begin_step(&mut self, now_ms: i64) -> StepStart {
        let guidance = self.next_guidance();
        let guidance_seq = guidance.map(|action| action.session_seq);
        let value = guidance.map(guidance_of);
        let arrival = self.work.front();
        let (arrival_seq, arrival) = (arrival.map(|a| a.session_seq), arrival.map(arrival_of));
        StepStart {
            guidance: value.as_ref().map(Json::of),
            frame: FrameIn {
                step: self.head.next_step_token.clone(),
                state: std::mem::take(&mut self.state),
                guidance: value,
            },
            iteration: self.head.steps,
            started_ms: now_ms,
            guidance_seq,
            arrival,
            arrival_seq,
            answer: None,
            turn: None,
        }
    }

    /// Starts a step that takes the answer of a call, and nothing else.
    pub fn begin_answer_step(&mut self, mut answer: Answer, now_ms: i64) -> StepStart {
        if self.is_stop_held || self.is_ended(&answer.key) {
            // Its end was accepted: what is begun now would act after it.
            answer.outcome.leave_uncalled();
        }
        StepStart { answer: Some(answer), ..self.begin_bare_step(now_ms) }
    }

    fn begin_bare_step(&mut self, now_ms: i64) -> StepStart {
        StepStart {
            guidance: None,
            frame: FrameIn {
                step: self.head.next_step_token.clone(),
                state: std::mem::take(&mut self.state),
                guidance: None,
            },
            iteration: self.head.steps,
            started_ms: now_ms,
            guidance_seq: None,
            arrival: None,
            arrival_seq: None,
            answer: None,
            turn: None,
        }
    }

    /// Who decides on the steps of this session.
    pub fn decider(&self) -> Decider {
        Decider {
            session: self.key.clone(),
            agent: self.agent_id.clone(),
            moniker: self.moniker,
            spec: self.spec.clone(),
        }
    }

    /// The step did not happen: everything is as before.
    pub fn abandon_step(&mut self, start: StepStart) {
        self.state = start.frame.state;
    }

    /// Nothing to do: waits for input (and no longer than the session may run). While calls are
    /// under way the session stays due: whoever takes it over starts them again.
    pub fn await_input(&mut self, start: StepStart, now_ms: i64) {
        self.rest_until(start, Cause::Input, now_ms);
    }

    /// Nothing to do until a dispatched operation ends.
    pub fn await_operation(&mut self, start: StepStart, now_ms: i64) {
        self.rest_until(start, Cause::Operation, now_ms);
    }

    fn rest_until(&mut self, start: StepStart, cause: Cause, now_ms: i64) {
        self.abandon_step(start);
        if self.calls().is_empty() {
            self.head.cause = cause;
            self.head.wake_at_ms = self.runtime_ends_ms();
        } else if self.head.cause != Cause::Runnable || self.head.wake_at_ms.is_none_or(|at| at > now_ms) {
            self.head.cause = Cause::Runnable;
            self.head.wake_at_ms = Some(now_ms);
        }
    }

    /// The arrival is refused; no step is recorded.
    pub fn refuse_arrival(&mut self, start: StepStart, code: Code, message: String, now_ms: i64) {
        let refused = start.arrival_seq.and_then(|seq| self.work.remove(seq));
        self.abandon_step(start);
        if let Some(action) = refused {
            self.refuse_because(now_ms, &action, code, message);
        }
    }

    /// Records a finished step with all that it causes; a step beyond the limits causes nothing.
    pub fn finish_emitting(
        &mut self,
        mut start: StepStart,
        out: FrameOut,
        took_arrival: bool,
        emits: Emits,
        now_ms: i64,
    ) -> StepTaken {
        start.turn.clone_from(&emits.turn);
        let taken = self.finish_step(start, out, took_arrival, now_ms);
        if taken == StepTaken::Ok {
            self.emit(emits, now_ms);
        }
        taken
    }

    /// Records a finished step and moves the cursor; a frame beyond the limits is a failed step.
    pub fn finish_step(&mut self, start: StepStart, out: FrameOut, took_arrival: bool, now_ms: i64) -> StepTaken {
        let state = Json::of(&out.state);
        let data = out.data.as_ref().map(Json::of);
        if let Some(problem) = oversized(&state, data.as_ref(), out.text.as_deref()) {
            return self.fail_step(start, Code::FrameInvalid, problem, now_ms);
        }
        self.settle_consumed(&start, took_arrival);
        self.state = out.state;
        self.state_json = state;
        let offset = self.next_offset();
        let step = StepRecord {
            iteration: start.iteration,
            offset,
            created_at_ms: now_ms,
            turn_id: start.turn,
            step_token: start.frame.step.clone(),
            next_step_token: out.next_step.clone(),
            status: StepStatus::Ok,
            text: out.text,
            data,
            state: self.state_json.clone(),
            guidance: start.guidance,
            notes: out.notes,
            latency_ms: u64::try_from(now_ms - start.started_ms).unwrap_or(0),
            error: None,
        };
        self.say(&step, out.data);
        self.unsaved.step(step);
        self.head.steps += 1;
        self.head.step_token = Some(start.frame.step);
        self.head.next_step_token = out.next_step;
        self.continue_after(out.done, now_ms);
        StepTaken::Ok
    }

    /// Records a failed step: `error` status, and the same token next time (SPEC Q-ACT-13, K-45).
    pub fn fail_step(&mut self, start: StepStart, code: Code, message: String, now_ms: i64) -> StepTaken {
        let error: String = format!("{}: {message}", code.as_str()).chars().take(ERROR_CHARS_MAX).collect();
        // The guidance was seen by a step; the work was not done and stays for a resume.
        self.settle_consumed(&start, false);
        self.state = start.frame.state;
        let offset = self.next_offset();
        self.unsaved.step(StepRecord {
            iteration: start.iteration,
            offset,
            created_at_ms: now_ms,
            turn_id: start.turn,
            step_token: start.frame.step.clone(),
            next_step_token: start.frame.step.clone(),
            status: StepStatus::Error,
            text: None,
            data: None,
            state: self.state_json.clone(),
            guidance: start.guidance,
            notes: None,
            latency_ms: u64::try_from(now_ms - start.started_ms).unwrap_or(0),
            error: Some(error.clone()),
        });
        self.head.steps += 1;
        self.head.step_token = Some(start.frame.step);
        self.head.last_error = Some(error.clone());
        if self.head.status == SessionStatus::Running {
            self.end(now_ms, SessionStatus::Error, StopReason::Failed, json!({"error": error, "code": code}));
        }
        StepTaken::Failed
    }

    /// Records a failed step that took nothing, if the session runs: what the step came to cannot be
    /// recorded. Guidance and work wait for a resume.
    pub fn fail(&mut self, code: Code, message: String, now_ms: i64) {
        if self.head.status == SessionStatus::Running {
            let start = self.begin_bare_step(now_ms);
            self.fail_step(start, code, message, now_ms);
        }
    }

    fn settle_consumed(&mut self, start: &StepStart, took_arrival: bool) {
        if let Some(action) = start.guidance_seq.and_then(|seq| self.control.remove(seq)) {
            self.unsaved.settle_ok(action.action_id);
        }
        if took_arrival && let Some(action) = start.arrival_seq.and_then(|seq| self.work.remove(seq)) {
            self.unsaved.settle_ok(action.action_id);
        }
    }

    /// `done` ends a finite session; otherwise the next step is due after the loop interval.
    fn continue_after(&mut self, done: bool, now_ms: i64) {
        if self.head.status != SessionStatus::Running {
            return;
        }
        if done && self.spec.stop_on_done {
            self.end(now_ms, SessionStatus::Completed, StopReason::Done, json!({}));
        } else if self.spec.loop_interval_ms > 0 {
            let interval = i64::try_from(self.spec.loop_interval_ms).unwrap_or(i64::MAX);
            // Whoever is not in memory is woken by its timer alone, also to be ended in time.
            let ends_ms = self.runtime_ends_ms().unwrap_or(i64::MAX);
            self.head.cause = Cause::Timer;
            self.head.wake_at_ms = Some(now_ms.saturating_add(interval).min(ends_ms));
        } else {
            self.head.cause = Cause::Runnable;
            self.head.wake_at_ms = Some(now_ms);
        }
    }
}

fn oversized(state: &Json, data: Option<&Json>, text: Option<&str>) -> Option<String> {
    let sizes = [
        ("state", state.as_str().len(), STATE_BYTES_MAX),
        ("data", data.map_or(0, |data| data.as_str().len()), DATA_BYTES_MAX),
        ("text", text.map_or(0, str::len), TEXT_BYTES_MAX),
    ];
    let (name, size, max) = sizes.into_iter().find(|(_, size, max)| size > max)?;
    Some(format!("{name} of the step's answer has {size} bytes; at most {max} are allowed"))
}

pub(super) fn guidance_of(action: &Action) -> Value {
    match action.payload.to_value() {
        Value::Object(mut payload) => payload.remove("guidance").unwrap_or(Value::Null),
        other => other,
    }
}

fn arrival_of(action: &Action) -> Arrival {
    let kind = if action.kind == ActionType::ToolResult { ArrivalKind::ToolResult } else { ArrivalKind::Input };
    Arrival {
        action_id: action.action_id.clone(),
        kind,
        payload: action.payload.to_value(),
        accepted_at_ms: action.accepted_at_ms,
    }
}
