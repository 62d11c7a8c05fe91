//! A live session: its head, its state and what is admitted for it, with all transitions as
//! plain methods. It may run ahead of the database: what is not committed yet lies in `unsaved`.

mod calls;
mod control;
mod inbox;
mod opening;
mod paying;
mod saying;
mod step;
mod unsaved;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use schemas::action::{Action, ActionType, Lane};
use schemas::event::EventKind;
use schemas::id::{AgentId, Epoch, SessionKey, Shard};
use schemas::json::Json;
use schemas::limits::{RUN_AHEAD_BYTES_MAX, RUN_AHEAD_STEPS_MAX};
use schemas::session::{Cause, Head, SessionRow, SessionSpec, SessionStatus, StopReason};
use serde_json::Value;

pub use calls::refused_call;
pub use inbox::{Admission, LaneInbox};
pub use opening::{opened, opens};
pub use step::{Decider, StepStart, StepTaken};
use unsaved::Unsaved;

use crate::effect::EffectRow;
use crate::moniker::Moniker;

/// One running instance of an agent, in memory.
pub struct Session {
    pub key: SessionKey,
    pub agent_id: AgentId,
    pub shard: Shard,
    pub spec: Arc<SessionSpec>,
    moniker: &'static dyn Moniker,
    head: Head,
    /// Taken out while a step runs.
    state: Value,
    state_json: Json,
    pub control: LaneInbox,
    pub work: LaneInbox,
    unsaved: Unsaved,
    /// Calls are under way: a pause waits for them.
    is_calling: bool,
    /// Calls are cut short, and recorded: a stop waits for them.
    is_stop_held: bool,
}

/// What to do at a step boundary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// A step may be tried now.
    Step,
    /// Nothing to do before this time or the next action.
    Wait { until_ms: Option<i64> },
    /// At rest: only the ledger's leftovers remain to be refused.
    Rest,
}

impl Session {
    /// Takes up a session where its last commit left it.
    pub fn resume(row: SessionRow, state: Json, moniker: &'static dyn Moniker) -> Self {
        Self {
            key: row.key,
            agent_id: row.agent_id,
            shard: row.shard,
            spec: Arc::new(row.spec),
            moniker,
            unsaved: Unsaved::after(&row.head),
            head: row.head,
            state: state.to_value(),
            state_json: state,
            control: LaneInbox::default(),
            work: LaneInbox::default(),
            is_calling: false,
            is_stop_held: false,
        }
    }

    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Whether steps, events or outcomes wait to be committed.
    pub fn has_unsaved(&self) -> bool {
        !self.unsaved.is_empty()
    }

    /// A row of the effects ledger goes with the next commit.
    pub fn note_effect(&mut self, row: EffectRow) {
        self.unsaved.effect(row);
    }

    pub fn inbox(&mut self, lane: Lane) -> &mut LaneInbox {
        match lane {
            Lane::Control => &mut self.control,
            Lane::Work => &mut self.work,
        }
    }

    /// Admits a delivered action; see [`LaneInbox::admit`].
    pub fn admit(&mut self, action: Action) -> Admission {
        self.inbox(action.lane()).admit(action)
    }

    /// Brings the session to its boundary: create, stop, pause and resume, limits, in the order
    /// stop → pause → one guidance → step (DESIGN 5). Says what comes next.
    pub fn boundary(&mut self, now_ms: i64) -> Next {
        if self.head.status == SessionStatus::Starting && !self.apply_create(now_ms) {
            return Next::Wait { until_ms: None };
        }
        self.apply_control(now_ms);
        self.finish_stopping(now_ms);
        self.refuse_untakeable(now_ms);
        // A stop that waits came first.
        if self.head.status == SessionStatus::Running && !self.is_stop_held {
            self.apply_limits(now_ms);
        }
        match self.head.status {
            SessionStatus::Running if self.head.wake_at_ms.is_some_and(|at| at > now_ms) => self.wait_or_hurry(),
            SessionStatus::Running => Next::Step,
            SessionStatus::Paused | SessionStatus::Starting => Next::Wait { until_ms: None },
            SessionStatus::Stopping | SessionStatus::Stopped | SessionStatus::Completed | SessionStatus::Error => {
                Next::Rest
            }
        }
    }

    /// Waits for the timer, unless there is input it need not wait for, urgent guidance, or a stop.
    fn wait_or_hurry(&self) -> Next {
        let waits_for_input = self.head.cause == Cause::Input;
        let has_input = self.work.front().is_some() || self.next_guidance().is_some();
        if (waits_for_input && has_input) || self.urgent_guidance_after(0) || self.is_stop_held {
            return Next::Step;
        }
        Next::Wait { until_ms: self.head.wake_at_ms }
    }

    /// The create action: first of the work lane. Returns whether the session has started.
    fn apply_create(&mut self, now_ms: i64) -> bool {
        if self.work.front().is_none_or(|action| action.kind != ActionType::Create) {
            return false;
        }
        let Some(action) = self.work.pop() else { return false };
        let given = action.payload.to_value().get("state").cloned().filter(|state| !state.is_null());
        let state = self.moniker.initial_state(&self.spec, given.unwrap_or_else(|| serde_json::json!({})));
        self.state_json = Json::of(&state);
        self.state = state;
        self.head.started_at_ms = Some(now_ms);
        self.unsaved.settle_ok(action.action_id.clone());
        self.event(
            now_ms,
            EventKind::Created,
            serde_json::json!({"action_id": action.action_id, "moniker": self.spec.moniker, "by": action.actor}),
        );
        self.become_running(now_ms, serde_json::json!({"action_id": action.action_id}));
        true
    }

    /// `max_steps` and `max_runtime` (SPEC Q-MON-11).
    fn apply_limits(&mut self, now_ms: i64) {
        if self.spec.max_steps.is_some_and(|max| self.head.steps >= max) {
            self.end(now_ms, SessionStatus::Stopped, StopReason::MaxSteps, serde_json::json!({}));
        } else if self.runtime_ends_ms().is_some_and(|end| now_ms >= end) {
            self.end(now_ms, SessionStatus::Stopped, StopReason::MaxRuntime, serde_json::json!({}));
        }
    }

    fn runtime_ends_ms(&self) -> Option<i64> {
        let max = i64::try_from(self.spec.max_runtime_ms?).unwrap_or(i64::MAX);
        Some(self.head.started_at_ms?.saturating_add(max))
    }

    /// Whether there is something a commit would save.
    pub fn is_dirty(&self) -> bool {
        !self.unsaved.is_empty() || self.unsaved.head_differs(&self.head)
    }

    /// Whether no further step may run before a commit is answered (DESIGN 5, pipelining).
    pub fn is_far_ahead(&self) -> bool {
        self.unsaved.steps() >= RUN_AHEAD_STEPS_MAX || self.unsaved.bytes() >= RUN_AHEAD_BYTES_MAX
    }

    /// Everything since the last call as one commit under the given epoch.
    pub fn take_commit(&mut self, epoch: Epoch, now_ms: i64) -> crate::commit::Commit {
        self.head.epoch = epoch;
        self.head.updated_at_ms = now_ms;
        let unsaved = std::mem::replace(&mut self.unsaved, Unsaved::after(&self.head));
        let agent = (self.agent_id.clone(), self.spec.moniker.clone(), self.spec.conversation_id.clone());
        unsaved.into_commit((self.key.clone(), self.shard, epoch), agent, self.head.clone(), self.state_json.clone())
    }

    fn event(&mut self, now_ms: i64, kind: EventKind, data: Value) {
        let offset = self.next_offset();
        self.unsaved.event(offset, now_ms, kind, Json::of(&data));
    }

    fn next_offset(&mut self) -> u64 {
        let offset = self.head.next_offset;
        self.head.next_offset += 1;
        offset
    }

    fn set_status(&mut self, now_ms: i64, status: SessionStatus, mut detail: Value) {
        if self.head.status == status {
            return;
        }
        self.head.status = status;
        detail["status"] = Value::from(status.as_str());
        self.event(now_ms, EventKind::Status, detail);
    }

    fn become_running(&mut self, now_ms: i64, detail: Value) {
        self.set_status(now_ms, SessionStatus::Running, detail);
        self.head.cause = Cause::Runnable;
        self.head.wake_at_ms = Some(now_ms);
    }

    fn end(&mut self, now_ms: i64, status: SessionStatus, reason: StopReason, mut detail: Value) {
        if status.is_final() {
            self.say_farewell(now_ms);
        }
        self.head.stop_reason = Some(reason);
        self.head.cause = Cause::Ended;
        self.head.wake_at_ms = None;
        detail["reason"] = serde_json::json!(reason);
        self.set_status(now_ms, status, detail);
    }
}
