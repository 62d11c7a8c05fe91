//! One step: decide, perform, decide again, finish. Decisions run ahead of commits; effects wait
//! until everything before them is durable.

use std::future::Future;
use std::pin::{Pin, pin};
use std::time::Duration;

use domain::effect::{
    Asked, Effect, EffectCall, EffectClass, EffectFailure, EffectRow, EffectState, Outcome, effect_key,
};
use domain::moniker::{Decision, EFFECTS_PER_STEP_MAX};
use domain::session::{StepStart, StepTaken};
use schemas::action::Lane;
use schemas::limits::{DESTROY_GRACE_MS, EFFECT_MS_MAX};
use schemas::problem::Code;
use schemas::session::SessionStatus;
use schemas::telemetry::metric;
use tokio::time::Instant;

use super::{Exit, Flow, Live, ShardContext, contexts};

/// After this time a call that could not be reached is asked again to end early: it had just begun, or ended. A stop
/// that waits looks at its grace as often.
const CUT_AGAIN_MS: i64 = 20;

/// How long a call that is told to end early has for it.
const CUT_MS: u64 = 1_000;

/// What the effects of a step have come to.
#[derive(Default)]
struct Made {
    outcomes: Vec<Outcome>,
    /// Settled by the commit that holds the answers: after a crash before it they are in doubt.
    answered: Vec<EffectRow>,
}

/// How an effect ended for the step that asked for it.
enum Performed {
    Done(Outcome),
    /// Not begun, or ended early: by urgent guidance, with which the step starts over, or by the end of the session's
    /// grace or of the shard's. With what it came to by then, if it could tell.
    Cut(Option<Outcome>),
}

impl Live {
    pub(super) async fn step(&mut self) -> Flow {
        if !self.context.shared.lease.is_fresh() {
            // Whoever was stopped for a while may have a successor, and finds out before it runs a step again.
            tokio::select! {
                () = self.context.shared.lease.fresh() => {}
                () = self.context.hand_over.cancelled() => {}
            }
            return Ok(());
        }
        if self.session.is_far_ahead() {
            self.save()?;
            // What was just sent leaves room; what still waits for the commit before it does not.
            if self.session.is_far_ahead() {
                self.in_flight.answered().await?;
            }
            // Look at the mail again before going on.
            return Ok(());
        }
        let Some(start) = self.begin().await? else { return Ok(()) };
        if let Some(log) = &self.context.shared.config.step_log {
            log.note(&self.session.key.session_id, start.iteration);
        }
        if let Some(key) = self.in_doubt.take() {
            return self.surface_doubt(start, key);
        }
        self.rounds(start).await
    }

    /// What the next step is about: guidance, an answer of a call, or else what has arrived. `None`:
    /// look at the mail again first.
    async fn begin(&mut self) -> Flow<Option<StepStart>> {
        let now = self.context.now_ms();
        let has_guidance = self.session.next_guidance().is_some();
        let is_cut = self.calls.is_open() && self.session.cuts_calls();
        // What is cut short is recorded before what cuts it: it was said before.
        let cut = if is_cut { self.session.cut_short() } else { Vec::new() };
        let all_told = self.cut_calls(&cut);
        if (is_cut || !has_guidance)
            && let Some(answer) = self.calls.take()
        {
            return Ok(Some(self.session.begin_answer_step(answer, now)));
        }
        let waits_for_cut = self.calls.under_way(&cut).next().is_some();
        let is_stopping = self.session.stop_asked();
        if waits_for_cut || (self.session.pause_asked() && self.calls.is_running()) {
            let looks_again = waits_for_cut && (!all_told || is_stopping);
            self.wait(looks_again.then(|| now.saturating_add(CUT_AGAIN_MS))).await?;
            return Ok(None);
        }
        if is_stopping {
            // There is nothing left to wait for, and nothing to begin.
            return Ok(None);
        }
        if !has_guidance {
            self.start_calls().await?;
        }
        Ok(Some(self.session.begin_step(self.context.now_ms())))
    }

    /// Decides and performs until the step ends one way or another.
    async fn rounds(&mut self, start: StepStart) -> Flow {
        let (mut start, mut made) = (start, Made::default());
        loop {
            let decided = self.decide(start, made.outcomes).await?;
            (start, made.outcomes) = (decided.start, decided.outcomes);
            match decided.decision {
                Decision::Perform(effect) if made.outcomes.len() < EFFECTS_PER_STEP_MAX => {
                    match self.round(start, effect, &mut made).await? {
                        Some(goes_on) => start = goes_on,
                        None => return Ok(()),
                    }
                }
                Decision::Perform(_) => {
                    self.note_done(&mut made);
                    let message = format!("asked for more than {EFFECTS_PER_STEP_MAX} effects in one step");
                    self.fail(start, Code::StepFailed, message)?;
                    return Ok(());
                }
                waits @ (Decision::AwaitInput | Decision::AwaitOperation) => {
                    self.note_done(&mut made);
                    return self.wait_for_news(start, waits == Decision::AwaitOperation).await;
                }
                Decision::Refuse { code, message } => {
                    self.note_done(&mut made);
                    self.session.refuse_arrival(start, code, message, self.context.now_ms());
                    return Ok(());
                }
                Decision::Fail { code, message } => {
                    self.note_done(&mut made);
                    return self.fail(start, code, message);
                }
                Decision::Emit { out, took_arrival, emits } => {
                    if self.in_flight.held_until().is_none() {
                        self.save()?;
                    }
                    let now = self.context.now_ms();
                    metrics::histogram!(metric::STEP_SECONDS).record((now - start.started_ms).max(0) as f64 / 1_000.0);
                    self.note_done(&mut made);
                    let change = contexts::Change::of(&start, &emits);
                    if self.session.finish_emitting(start, out, took_arrival, *emits, now) == StepTaken::Ok {
                        self.contexts.take(change);
                    }
                    return Ok(());
                }
                Decision::Finish { out, took_arrival } => {
                    // What came before goes out first, so that its commit overlaps with what follows.
                    self.save_in_time()?;
                    let now = self.context.now_ms();
                    metrics::histogram!(metric::STEP_SECONDS).record((now - start.started_ms).max(0) as f64 / 1_000.0);
                    self.note_done(&mut made);
                    self.session.finish_step(start, out, took_arrival, now);
                    return Ok(());
                }
            }
        }
    }

    /// One effect more. `None`: the step ends without its outcome.
    async fn round(&mut self, start: StepStart, mut effect: Effect, made: &mut Made) -> Flow<Option<StepStart>> {
        let index = made.outcomes.len();
        self.session.bill(&mut effect, &made.outcomes, self.context.now_ms());
        let row = self.effect_row(&start, index, &effect, EffectState::Settled);
        match self.perform(&start, index, effect).await? {
            Performed::Done(outcome) => {
                made.outcomes.push(outcome);
                made.answered.extend(row);
            }
            Performed::Cut(outcome) => {
                made.outcomes.extend(outcome);
                self.session.note_calls(&made.outcomes, self.context.now_ms());
                self.session.abandon_step(start);
                return Ok(None);
            }
        }
        let over = made.outcomes.last().and_then(Outcome::asked).and_then(|asked| asked.over.clone());
        let Some(over) = over else { return Ok(Some(start)) };
        self.note_done(made);
        // What was accepted before the budget was met is no answer to it, also if it has not been delivered yet.
        if self.catch_up().await? {
            self.session.hold(start, (&over, &made.outcomes), self.context.now_ms());
        } else {
            self.session.abandon_step(start);
        }
        Ok(None)
    }

    /// Reads what the ledger has for those who steer the session, however long it is away. `false`: the session is to be
    /// handed over first.
    async fn catch_up(&mut self) -> Flow<bool> {
        self.read_mail();
        self.session.inbox(Lane::Control).suspect();
        loop {
            self.read_ledger().await;
            if self.session.inbox(Lane::Control).wants().is_none() {
                return Ok(true);
            }
            if self.context.lost.is_cancelled() {
                return Err(Exit::Fenced);
            }
            if self.context.hand_over.is_cancelled() {
                return Ok(false);
            }
        }
    }

    /// A session whose calls are under way is due all the time, and waits for them.
    async fn wait_for_news(&mut self, start: StepStart, of_operation: bool) -> Flow {
        if start.is_answer() {
            // Nobody waits for it any more, and what else there is to do was not looked at.
            self.session.abandon_step(start);
            return Ok(());
        }
        let now = self.context.now_ms();
        if of_operation {
            self.session.await_operation(start, now);
        } else {
            self.session.await_input(start, now);
        }
        let until = self.session.head().wake_at_ms.filter(|_| !self.calls.is_open());
        self.wait(until).await
    }

    /// What the effects of a step that ends leave behind, whatever it comes to.
    fn note_done(&mut self, made: &mut Made) {
        self.note_effects(std::mem::take(&mut made.answered));
        self.session.note_calls(&made.outcomes, self.context.now_ms());
    }

    fn note_effects(&mut self, rows: Vec<EffectRow>) {
        for row in rows {
            self.session.note_effect(row);
        }
    }

    fn fail(&mut self, start: StepStart, code: Code, message: String) -> Flow {
        tracing::info!(session.id = %self.session.key, iteration = start.iteration, code = code.as_str(), %message, "a step failed");
        self.session.fail_step(start, code, message, self.context.now_ms());
        Ok(())
    }

    /// An at-most-once call may or may not have happened before a crash: a person decides (E2).
    fn surface_doubt(&mut self, start: StepStart, key: String) -> Flow {
        self.session.note_effect(EffectRow {
            key: key.clone(),
            class: EffectClass::AtMostOnce,
            state: EffectState::Settled,
            what: "surfaced as in doubt".into(),
        });
        let message = format!(
            "the call with key {key} was sent and its answer is not known; check the other side, then resume to send it again under a new key"
        );
        self.fail(start, Code::EffectInDoubt, message)
    }

    /// The row of the effects ledger of the `index`th effect of a step, if its class needs one.
    fn effect_row(&self, start: &StepStart, index: usize, effect: &Effect, state: EffectState) -> Option<EffectRow> {
        let class = effect.class();
        (class == EffectClass::AtMostOnce).then(|| EffectRow {
            key: effect_key(&self.session.key, start.iteration, index),
            class,
            state,
            what: effect.kind().into(),
        })
    }

    async fn perform(&mut self, start: &StepStart, index: usize, effect: Effect) -> Flow<Performed> {
        let kind = effect.kind();
        // A hand-over may begin before the commit under way is answered; only the next one can say `sent`.
        if !self.in_flight.is_none() {
            self.in_flight.answered().await?;
        }
        // What was never noted as sent is not in doubt: the next owner begins anew.
        if self.context.hand_over.is_cancelled() {
            return Ok(Performed::Cut(None));
        }
        let sent = self.effect_row(start, index, &effect, EffectState::Sent);
        self.note_effects(sent.into_iter().collect());
        self.save_all().await?;
        let key = effect_key(&self.session.key, start.iteration, index);
        let call = EffectCall { session: self.session.key.clone(), epoch: self.context.lease.epoch, key, effect };
        let started = Instant::now();
        let performed = self.attend(&call).await;
        metrics::histogram!(metric::EFFECT_SECONDS, "kind" => kind).record(started.elapsed().as_secs_f64());
        performed
    }

    /// Waits for the effect and attends to what comes meanwhile. Only a lost shard keeps what is noted as
    /// sent from being started; one that is handed over keeps its lease for as long as the grace.
    async fn attend(&mut self, call: &EffectCall) -> Flow<Performed> {
        let is_repeatable = call.effect.class() != EffectClass::AtMostOnce;
        let newest_control = self.session.control.admitted();
        let context = self.context.clone();
        let running = make(&context, call);
        tokio::pin!(running);
        let mut grace: Option<Instant> = None;
        loop {
            let grace_ends = grace.unwrap_or_else(|| Instant::now() + Duration::from_millis(EFFECT_MS_MAX));
            tokio::select! {
                biased;
                // A renewal that makes the lease fresh again may be the very one that found this shard lost.
                () = context.lost.cancelled() => return Err(Exit::Fenced),
                () = context.hand_over.cancelled(), if grace.is_none() => {
                    // What may be repeated is handed back: others of the shard wait for its next owner.
                    if is_repeatable {
                        return Ok(end_early(&context, &call.key, running).await);
                    }
                    grace = Some(Instant::now() + Duration::from_millis(context.shared.config.drain_grace_ms));
                }
                outcome = &mut running => return Ok(Performed::Done(outcome)),
                mail = self.mailbox.recv() => match mail {
                    Some(mail) => self.admit(mail),
                    // The shard's task is gone, and nobody waits for the grace.
                    None => return Err(Exit::HandedOver),
                },
                answer = self.in_flight.answered() => answer?,
                () = tokio::time::sleep_until(grace_ends), if grace.is_some() => {
                    return Ok(end_early(&context, &call.key, running).await);
                }
            }
            self.read_ledger().await;
            if self.session.stop_asked() {
                self.session.begin_stopping(context.now_ms());
                self.save()?;
            }
            if self.session.head().status == SessionStatus::Stopping && grace.is_none() {
                grace = Some(Instant::now() + Duration::from_millis(DESTROY_GRACE_MS));
            }
            if is_repeatable && self.session.urgent_guidance_after(newest_control) {
                return Ok(end_early(&context, &call.key, running).await);
            }
        }
    }
}

/// Makes the call once the lease allows it.
async fn make(context: &ShardContext, call: &EffectCall) -> Outcome {
    context.shared.lease.fresh().await;
    let mut performing = pin!(context.shared.deps.effects.perform(call));
    match tokio::time::timeout(Duration::from_millis(EFFECT_MS_MAX), &mut performing).await {
        Ok(outcome) => outcome,
        Err(_) => timed_out(end_early(context, &call.key, performing).await),
    }
}

/// Ends a call before its time: by dropping it, unless it can be told to and says what it has used by then.
async fn end_early(context: &ShardContext, key: &str, running: Pin<&mut impl Future<Output = Outcome>>) -> Performed {
    if !context.shared.deps.effects.cut(key) {
        return Performed::Cut(None);
    }
    Performed::Cut(tokio::time::timeout(Duration::from_millis(CUT_MS), running).await.ok())
}

/// What was asked of a model is paid for all the same.
fn timed_out(ended: Performed) -> Outcome {
    let failure = EffectFailure {
        code: Code::StepFailed,
        message: format!("no answer within {EFFECT_MS_MAX} ms"),
        retriable: true,
        may_have_happened: true,
    };
    match ended {
        Performed::Cut(Some(Outcome::Asked(asked))) => Asked { answer: Err(failure), ..*asked }.into(),
        _ => Outcome::Failed(failure),
    }
}
