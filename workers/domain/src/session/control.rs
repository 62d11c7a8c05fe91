//! Control at a boundary: stop, then pause and resume in order; guidance stays in the lane until
//! a step takes it, so it is durable in the ledger and never applied while paused (K-21, K-22).

use schemas::action::{Action, ActionType};
use schemas::event::EventKind;
use schemas::json::Json;
use schemas::problem::Code;
use schemas::session::{Cause, SessionStatus, StopReason};
use serde_json::{Value, json};

use super::Session;
use super::step::guidance_of;
use crate::action::SESSION_ACTOR;
use crate::converse::ids;
use crate::moniker::{Emits, FollowUp};

impl Session {
    /// Whether a stop is asked for and not begun.
    pub fn stop_asked(&self) -> bool {
        self.control.iter().any(|action| action.kind == ActionType::Destroy)
    }

    /// Whether a pause waits for the calls under way: they are a running step, and a pause never
    /// cuts one (DESIGN 5).
    pub fn pause_asked(&self) -> bool {
        self.control.iter().any(|action| action.kind == ActionType::Pause)
    }

    /// Whether guidance with `"mode": "now"` waits that came after the given place in the lane: it
    /// cancels the call that was running then.
    pub fn urgent_guidance_after(&self, session_seq: u64) -> bool {
        self.control.iter().any(|action| action.session_seq > session_seq && is_urgent(action))
    }

    /// Whether something waits that ends calls before their time: what they came to is recorded before it is taken.
    pub fn cuts_calls(&self) -> bool {
        self.control.iter().any(|action| self.is_cutting(action))
    }

    /// Keys of those calls (`Moniker::cuts`).
    pub fn cut_short(&self) -> Vec<String> {
        let mut keys = self.cut_by(|action| self.is_cutting(action));
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    fn cut_by(&self, is_cause: impl Fn(&Action) -> bool) -> Vec<String> {
        let causes = self.control.iter().filter(|action| is_cause(action));
        let guidance = |action: &Action| (action.kind == ActionType::Interrupt).then(|| guidance_of(action));
        let causes: Vec<Option<Value>> = causes.map(guidance).collect();
        self.moniker.cuts(&self.spec, &self.state, &causes)
    }

    fn is_cutting(&self, action: &Action) -> bool {
        match action.kind {
            ActionType::Destroy => true,
            ActionType::Interrupt => is_urgent(action) || self.is_end_of_work(action),
            _ => false,
        }
    }

    fn is_end_of_work(&self, action: &Action) -> bool {
        action.kind == ActionType::Interrupt && self.moniker.ends_work(&guidance_of(action))
    }

    /// Whether guidance that waits ends the work that this call is of.
    pub(super) fn is_ended(&self, key: &str) -> bool {
        self.control.iter().any(|action| self.is_end_of_work(action))
            && self.cut_by(|action| self.is_end_of_work(action)).iter().any(|ended| ended == key)
    }

    /// The oldest guidance that no step has taken.
    pub fn next_guidance(&self) -> Option<&Action> {
        self.control.iter().find(|action| action.kind == ActionType::Interrupt)
    }

    /// Begins to stop, also in the middle of a step.
    pub fn begin_stopping(&mut self, now_ms: i64) {
        for stop in self.control.extract(|action| action.kind == ActionType::Destroy) {
            self.apply_destroy(now_ms, &stop);
        }
    }

    pub(super) fn apply_control(&mut self, now_ms: i64) {
        if self.is_stop_held {
            return;
        }
        self.begin_stopping(now_ms);
        if self.is_calling && self.pause_asked() {
            return;
        }
        for action in self.control.extract(|a| matches!(a.kind, ActionType::Pause | ActionType::Resume)) {
            if action.kind == ActionType::Pause {
                self.apply_pause(now_ms, &action);
            } else {
                self.apply_resume(now_ms, &action);
            }
        }
    }

    /// `running/paused/error → stopping`; the runner then gives a running step its grace.
    fn apply_destroy(&mut self, now_ms: i64, action: &Action) {
        self.unsaved.settle_ok(action.action_id.clone());
        if self.head.status.is_final() || self.head.status == SessionStatus::Stopping {
            return;
        }
        let detail = detail_of(action);
        self.set_status(now_ms, SessionStatus::Stopping, detail);
        self.head.cause = Cause::Runnable;
        self.head.wake_at_ms = Some(now_ms);
    }

    /// `stopping → stopped`, at the boundary or when the grace is over.
    pub fn finish_stopping(&mut self, now_ms: i64) {
        if self.head.status == SessionStatus::Stopping {
            self.end(now_ms, SessionStatus::Stopped, StopReason::Destroyed, json!({}));
        }
    }

    fn apply_pause(&mut self, now_ms: i64, action: &Action) {
        match self.head.status {
            SessionStatus::Running => {
                let reason = reason_of(action);
                self.set_status(now_ms, SessionStatus::Paused, detail_of(action));
                self.head.cause = Cause::Paused { by: action.actor.clone(), reason };
                self.head.wake_at_ms = None;
                self.unsaved.settle_ok(action.action_id.clone());
                self.tell_children(now_ms, action);
            }
            SessionStatus::Paused => {
                self.take_over_pause(action);
                self.unsaved.settle_ok(action.action_id.clone());
            }
            _ => self.refuse(now_ms, action, Code::SessionEnded),
        }
    }

    /// Who works for this session pauses and goes on with it: by actions of the same commit, under ids
    /// that follow from the action's, so each is told once.
    fn tell_children(&mut self, now_ms: i64, action: &Action) {
        let children = self.moniker.children(&self.state);
        let reason = format!("its caller {} was told to {}", self.key.session_id, action.kind.as_str());
        let follow_ups = children.into_iter().map(|child| FollowUp {
            action_id: ids::action_id(action.action_id.as_str(), child.as_str()),
            kind: action.kind,
            session_id: child,
            agent_id: None,
            payload: Json::of(&json!({ "reason": reason })),
            session: None,
            seat: None,
        });
        let follow_ups: Vec<FollowUp> = follow_ups.collect();
        if !follow_ups.is_empty() {
            self.emit(Emits { follow_ups, ..Emits::default() }, now_ms);
        }
    }

    /// A pause that somebody asked for lasts when the caller's, which came first, is over.
    fn take_over_pause(&mut self, action: &Action) {
        if let Cause::Paused { by, reason } = &mut self.head.cause
            && is_session(by)
            && !is_session(&action.actor)
        {
            by.clone_from(&action.actor);
            *reason = reason_of(action);
        }
    }

    /// A caller that goes on ends the pause that it began, and no other.
    fn is_not_its_pause(&self, action: &Action) -> bool {
        let began = matches!(&self.head.cause, Cause::Paused { by, .. } if *by == action.actor);
        is_session(&action.actor) && !began
    }

    /// Also the way out of `error`, back to the step that failed (K-45).
    fn apply_resume(&mut self, now_ms: i64, action: &Action) {
        match self.head.status {
            SessionStatus::Paused | SessionStatus::Error if self.is_not_its_pause(action) => {
                self.unsaved.settle_ok(action.action_id.clone());
            }
            SessionStatus::Paused | SessionStatus::Error => {
                if self.head.status == SessionStatus::Paused {
                    self.tell_children(now_ms, action);
                }
                self.head.stop_reason = None;
                self.head.last_error = None;
                self.allow_more(now_ms);
                self.become_running(now_ms, detail_of(action));
                self.unsaved.settle_ok(action.action_id.clone());
            }
            SessionStatus::Running => self.unsaved.settle_ok(action.action_id.clone()),
            _ => self.refuse(now_ms, action, Code::SessionEnded),
        }
    }

    /// Work that this moniker can never take is refused at once, so that nothing waits in vain.
    pub(super) fn refuse_untakeable(&mut self, now_ms: i64) {
        let (takes_input, takes_results) = (self.moniker.takes_input(), self.moniker.takes_results());
        let refused = self.work.extract(|action| match action.kind {
            ActionType::Input => !takes_input,
            ActionType::ToolResult => !takes_results,
            ActionType::Create => true,
            _ => false,
        });
        for action in refused {
            let code = match action.kind {
                ActionType::ToolResult => Code::NoOpenOperation,
                ActionType::Create => Code::SessionExists,
                _ => Code::InputNotTaken,
            };
            self.refuse(now_ms, &action, code);
        }
    }

    /// Refuses whatever is still admitted for a session that has come to rest. A session in
    /// `error` keeps its work and its guidance: a resume takes them up.
    pub fn refuse_leftovers(&mut self, now_ms: i64) -> usize {
        if !self.head.status.is_final() {
            return 0;
        }
        let mut leftovers = self.control.extract(|_| true);
        leftovers.extend(self.work.extract(|_| true));
        for action in &leftovers {
            if action.kind == ActionType::Destroy {
                // It is as whoever asked for that wanted it.
                self.unsaved.settle_ok(action.action_id.clone());
            } else {
                self.refuse(now_ms, action, Code::SessionEnded);
            }
        }
        leftovers.len()
    }

    fn refuse(&mut self, now_ms: i64, action: &Action, code: Code) {
        let message = format!("{} ({} is {})", code.title(), self.key.session_id, self.head.status.as_str());
        self.refuse_because(now_ms, action, code, message);
    }

    pub(super) fn refuse_because(&mut self, now_ms: i64, action: &Action, code: Code, message: String) {
        self.unsaved.refuse(action.action_id.clone(), code, message.clone());
        if action.kind == ActionType::Input
            && let Some(told) = self.moniker.refused(&action.payload.to_value(), &message)
        {
            self.emit(Emits { follow_ups: vec![told], ..Emits::default() }, now_ms);
        }
        // Nothing follows the event that ends a stream.
        if !self.head.status.is_final() {
            let data = json!({"action_id": action.action_id, "type": action.kind, "outcome": "rejected",
                              "code": code, "error": message});
            self.event(now_ms, EventKind::Action, data);
        }
    }
}

fn detail_of(action: &Action) -> Value {
    let mut detail = json!({"action_id": action.action_id, "by": action.actor});
    if let Some(reason) = action.payload.to_value().get("reason").filter(|reason| reason.is_string()) {
        detail["reason_given"] = reason.clone();
    }
    detail
}

fn reason_of(action: &Action) -> Option<String> {
    action.payload.to_value().get("reason").and_then(Value::as_str).map(str::to_owned)
}

/// Whether a session acts, and not a person.
fn is_session(actor: &str) -> bool {
    actor.starts_with(SESSION_ACTOR)
}

fn is_urgent(action: &Action) -> bool {
    action.kind == ActionType::Interrupt && action.payload.to_value().get("mode").is_some_and(|mode| mode == "now")
}
