//! What the steps of a session ask of models: each call is an event, and is paid for whatever becomes of the step.

use schemas::event::EventKind;
use schemas::json::Json;
use schemas::limits::{PROVIDER_CALL_BYTES_MAX, SPENT_OF_SHARD_MAX};
use schemas::session::{Cause, Held, ModelUse, SessionStatus};
use serde_json::json;

use super::{Session, StepStart};
use crate::chat::ProviderCallRecord;
use crate::converse::{self, Over, Scope};
use crate::effect::{Effect, Outcome};
use crate::spending::Spent;

/// Who pauses a session that a budget stops.
const BUDGETS: &str = "budgets";

impl Session {
    /// Tells a request for a model what was used by this session, `before` it in its step too.
    pub fn bill(&self, effect: &mut Effect, before: &[Outcome], now_ms: i64) {
        let Effect::Model(request) = effect else { return };
        request.used = self.head.models.as_deref().cloned().unwrap_or_default();
        before.iter().filter_map(spent).for_each(|spent| request.unrecorded.add(spent));
        request.since_ms = request.used.since_ms.or(self.head.started_at_ms).unwrap_or(now_ms);
    }

    /// Records the calls of a step that ends, in one way or another: with the commit of what the step came to.
    pub fn note_calls(&mut self, outcomes: &[Outcome], now_ms: i64) {
        let records = outcomes.iter().filter_map(Outcome::asked).filter_map(|asked| asked.record.as_ref());
        for record in records {
            count(self.head.models.get_or_insert_default(), Spent::of_call(record));
            let offset = self.next_offset();
            // A step that begins anew asks under the same key, and is billed for both.
            let id = format!("{}:{offset}", record.id);
            let record = ProviderCallRecord { id, ..record.clone() }.within(PROVIDER_CALL_BYTES_MAX);
            self.unsaved.event(offset, now_ms, EventKind::ProviderCall, Json::of(&record));
        }
    }

    /// A budget does not allow the call that a step needs, which has made others already: the step did not happen, and
    /// the session is paused until a person resumes it. That allows more, enough to make those others again, because
    /// the step begins anew.
    pub fn hold(&mut self, start: StepStart, (over, made): (&Over, &[Outcome]), now_ms: i64) {
        let mut repeated = Spent::default();
        made.iter().filter_map(spent).for_each(|spent| repeated.add(spent));
        // Time counts from the yes on, and later by what the calls took that are made again: a step that takes longer than
        // its session may would be held each time.
        let took_ms = if repeated.calls > 0 { now_ms.saturating_sub(start.started_ms).max(0) } else { 0 };
        self.abandon_step(start);
        // Whatever was asked before is about something else.
        self.apply_control(now_ms);
        if self.head.status != SessionStatus::Running {
            return;
        }
        let over = &over.with_repeat(repeated, took_ms);
        let reason = converse::held(over);
        let detail = json!({"by": BUDGETS, "reason": reason, "over": over});
        self.set_status(now_ms, SessionStatus::Paused, detail);
        self.head.cause = Cause::Paused { by: BUDGETS.to_owned(), reason: Some(reason) };
        self.head.wake_at_ms = None;
        let held = Held { of_namespace: over.scope == Scope::Namespace, times: over.times, took_ms };
        self.head.models.get_or_insert_default().held = Some(held);
    }

    /// A resume of a session that a budget stopped is a yes.
    pub(super) fn allow_more(&mut self, now_ms: i64) {
        let Some(models) = &mut self.head.models else { return };
        let Some(Held { of_namespace, times, took_ms }) = models.held.take() else { return };
        if of_namespace {
            models.raised_namespace = models.raised_namespace.saturating_add(times);
        } else {
            models.raised_session = models.raised_session.saturating_add(times);
            models.since_ms = Some(now_ms.saturating_add(took_ms));
        }
    }
}

fn spent(outcome: &Outcome) -> Option<Spent> {
    outcome.asked()?.record.as_ref().map(Spent::of_call)
}

fn count(used: &mut ModelUse, spent: Spent) {
    used.calls = used.calls.saturating_add(spent.calls);
    used.tokens = used.tokens.saturating_add(spent.tokens).min(SPENT_OF_SHARD_MAX);
    used.cost_nanos = used.cost_nanos.saturating_add(spent.cost_nanos).min(SPENT_OF_SHARD_MAX);
}
