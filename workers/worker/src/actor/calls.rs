//! Calls beside the steps: started when the state asks for them and everything before is durable,
//! dropped when it does not, and answered one step each.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use domain::effect::{EffectCall, EffectFailure, Outcome};
use domain::moniker::{Answer, Call};
use schemas::limits::{DESTROY_GRACE_MS, EFFECT_MS_MAX};
use schemas::problem::Code;
use schemas::session::SessionStatus;
use schemas::telemetry::metric;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio::time::Instant;

use super::{Flow, Live};

/// The calls of one session that are under way, and answers that no step has taken.
#[derive(Default)]
pub(super) struct Calls {
    running: JoinSet<Outcome>,
    keys: HashMap<Id, (String, AbortHandle)>,
    answers: VecDeque<Answer>,
}

impl Calls {
    pub fn is_running(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Whether a step or a pause has anything to wait for here.
    pub fn is_open(&self) -> bool {
        self.is_running() || !self.answers.is_empty()
    }

    /// Resolves when a call has ended; pends if none is under way. Cancel safe.
    pub async fn ended(&mut self) {
        if self.keys.is_empty() {
            return std::future::pending().await;
        }
        if let Some(ended) = self.running.join_next_with_id().await {
            self.note(ended);
        }
    }

    /// The oldest answer, without waiting.
    pub fn take(&mut self) -> Option<Answer> {
        while let Some(ended) = self.running.try_join_next_with_id() {
            self.note(ended);
        }
        self.answers.pop_front()
    }

    fn note(&mut self, ended: Result<(Id, Outcome), JoinError>) {
        let (id, outcome) = match ended {
            Ok((id, outcome)) => (id, outcome),
            Err(error) if error.is_cancelled() => {
                self.keys.remove(&error.id());
                return;
            }
            Err(error) => (error.id(), failed("the call panicked; the log has the details")),
        };
        // A call that is no longer wanted has no key.
        if let Some((key, _)) = self.keys.remove(&id) {
            self.answers.push_back(Answer { key, outcome });
        }
    }

    /// Those of these calls that are under way.
    pub fn under_way<'c>(&'c self, keys: &'c [String]) -> impl Iterator<Item = &'c String> {
        // In the order of `keys`: that of the map differs from run to run.
        keys.iter().filter(move |key| self.keys.values().any(|(running, _)| running == *key))
    }

    /// Whether one of these calls is under way, or has an answer that no step has taken.
    pub fn awaits(&self, keys: &[String]) -> bool {
        self.answers.iter().any(|answer| keys.contains(&answer.key)) || self.under_way(keys).next().is_some()
    }

    /// Drops what is no longer wanted; returns what is to be started.
    fn missing(&mut self, wanted: Vec<Call>) -> Vec<Call> {
        self.keys.retain(|_, (key, handle)| {
            let is_wanted = wanted.iter().any(|call| call.key == *key);
            if !is_wanted {
                handle.abort();
            }
            is_wanted
        });
        let known = |key: &str| {
            self.keys.values().any(|(running, _)| running == key) || self.answers.iter().any(|a| a.key == key)
        };
        wanted.into_iter().filter(|call| !known(&call.key)).collect()
    }
}

impl Live {
    /// Brings the calls under way in line with the state. Nothing leaves before all that led to it is
    /// durable (invariant E1); what only reads does not leave, and its answer shares the commit.
    pub(super) async fn start_calls(&mut self) -> Flow {
        let wanted = self.session.calls();
        if wanted.is_empty() && !self.calls.is_running() {
            return Ok(());
        }
        let missing = self.calls.missing(wanted);
        if missing.is_empty() {
            return Ok(());
        }
        if self.in_flight.is_none() && self.session.may_read_ahead(&missing) {
            self.in_flight.hold();
        } else {
            self.save_all().await?;
        }
        tokio::select! {
            biased;
            () = self.context.hand_over.cancelled() => return Ok(()),
            () = self.context.shared.lease.fresh() => {}
        }
        for call in missing {
            self.start_call(call);
        }
        Ok(())
    }

    fn start_call(&mut self, call: Call) {
        let effects = self.context.shared.deps.effects.clone();
        let Call { key, mut effect } = call;
        self.contexts.hand_to(&mut effect);
        let kind = effect.kind();
        let session = self.session.key.clone();
        let made = EffectCall { key: self.call_key(&key), session, epoch: self.context.lease.epoch, effect };
        let handle = self.calls.running.spawn(async move {
            let started = Instant::now();
            let limit = Duration::from_millis(EFFECT_MS_MAX);
            let outcome = match tokio::time::timeout(limit, effects.perform(&made)).await {
                Ok(outcome) => outcome,
                Err(_) => failed("no answer within the longest time a call may take"),
            };
            metrics::histogram!(metric::EFFECT_SECONDS, "kind" => kind).record(started.elapsed().as_secs_f64());
            outcome
        });
        self.calls.keys.insert(handle.id(), (key, handle));
    }

    /// Asks those of these calls that are under way to end early with what they have; `false`: not all of them can
    /// be reached now.
    pub(super) fn cut_calls(&self, keys: &[String]) -> bool {
        let effects = &self.context.shared.deps.effects;
        self.calls.under_way(keys).filter(|key| !effects.cut(&self.call_key(key))).count() == 0
    }

    /// Whether a stop that is asked for waits until what models were asked is cut short, and recorded: it is paid for.
    /// No longer than a running step would get.
    pub(super) fn holds_stop(&mut self) -> bool {
        let is_running = self.session.head().status == SessionStatus::Running;
        if !is_running || !self.calls.is_open() || !self.session.stop_asked() {
            return false;
        }
        let grace = Duration::from_millis(DESTROY_GRACE_MS);
        let stops_by = *self.stops_by.get_or_insert_with(|| Instant::now() + grace);
        Instant::now() < stops_by && self.calls.awaits(&self.session.cut_short())
    }

    fn call_key(&self, key: &str) -> String {
        format!("{}:{}:{key}", self.session.key.namespace, self.session.key.session_id)
    }
}

fn failed(message: &str) -> Outcome {
    Outcome::Failed(EffectFailure {
        code: Code::StepFailed,
        message: message.to_owned(),
        retriable: true,
        may_have_happened: true,
    })
}
