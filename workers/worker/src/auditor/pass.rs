//! One walk over all sessions, and then over all active turns: what stands still is held against its cause.

use domain::audit::{Finding, OVERDUE_MS, TurnFinding, WorkFinding};
use domain::audit::{is_forgotten, is_suspect, judge, judge_idle, judge_turn};
use domain::failure::Failure;
use domain::invariant::Invariant;
use domain::ports::{ShardInfo, TurnPlace};
use schemas::conversation::Turn;
use schemas::id::SessionKey;
use schemas::session::{Cause, Head, SessionStatus};
use schemas::telemetry::metric;

use super::facts;
use super::heal::{Cure, Cured, heal};
use super::suspects::{Seen, Subject, Suspects};
use crate::runner::Shared;

/// Sessions of one page.
const PAGE: usize = 1_000;
/// Turns of one page: of each that waits, more is read.
const TURNS_PAGE: usize = 25;

/// Up to where the walk is.
#[derive(Clone)]
enum Walk {
    Sessions(Option<SessionKey>),
    Turns(Option<TurnPlace>),
}

pub(super) struct Pass {
    walk: Walk,
    /// Whether a live worker is known that runs operations; asked once a pass.
    has_executor: Option<bool>,
    pub overdue: usize,
    /// Operations that could be begun, and nobody is known who does.
    pub without_executor: usize,
    pub suspects: Suspects,
}

impl Default for Pass {
    fn default() -> Self {
        let walk = Walk::Sessions(None);
        Self { walk, has_executor: None, overdue: 0, without_executor: 0, suspects: Suspects::default() }
    }
}

/// A cause that seems to be missing.
struct Case<'c> {
    key: &'c SessionKey,
    subject: Subject,
    /// How far it was; once it is elsewhere, it is another case.
    place: u64,
    what: &'static str,
    cure: Cure<'c>,
}

impl Pass {
    /// Audits the next page. Returns whether it was the last.
    pub async fn page(&mut self, shared: &Shared, before: &Suspects) -> Result<bool, Failure> {
        let now_ms = shared.deps.clock.now_ms();
        match self.walk.clone() {
            Walk::Sessions(after) => {
                let page = shared.deps.sessions.heads(after.as_ref(), PAGE).await?;
                let is_last = page.len() < PAGE;
                for (key, head) in page {
                    self.session(shared, before, &key, &head, now_ms).await?;
                    self.walk = Walk::Sessions(Some(key));
                }
                if is_last {
                    self.walk = Walk::Turns(None);
                }
                Ok(false)
            }
            Walk::Turns(after) => {
                let page = shared.deps.conversations.active_turns(after.as_ref(), TURNS_PAGE).await?;
                let is_last = page.len() < TURNS_PAGE;
                for (place, turn) in page {
                    self.turn(shared, before, &place, &turn, now_ms).await?;
                    self.walk = Walk::Turns(Some(place));
                }
                Ok(is_last)
            }
        }
    }

    async fn session(
        &mut self,
        shared: &Shared,
        before: &Suspects,
        key: &SessionKey,
        head: &Head,
        now_ms: i64,
    ) -> Result<(), Failure> {
        match judge(head, now_ms) {
            Finding::Overdue { .. } => self.overdue += 1,
            Finding::Depends => {
                let moves = shared.deps.ledger.pending_count(key).await? > 0
                    || (head.cause == Cause::Operation && facts::has_open_work(shared, key).await?);
                if let Finding::WithoutCause { is_healable } = judge_idle(head, moves) {
                    let (subject, place) = (Subject::Session(key.clone()), head.next_offset);
                    let cure = if is_healable { Cure::Wake } else { Cure::Unknown };
                    let what = "a session has no cause to go on";
                    return self.treat(shared, before, Case { key, subject, place, what, cure }).await;
                }
            }
            Finding::Fine | Finding::WithoutCause { .. } => {}
        }
        Ok(())
    }

    async fn turn(
        &mut self,
        shared: &Shared,
        before: &Suspects,
        at: &TurnPlace,
        turn: &Turn,
        now_ms: i64,
    ) -> Result<(), Failure> {
        if !is_suspect(turn, now_ms) {
            return Ok(());
        }
        let key = &SessionKey::new(at.namespace.clone(), turn.session_id.clone());
        let head = shared.deps.sessions.session(key).await?.map(|row| row.head);
        let runs = head.as_ref().is_some_and(|head| head.status == SessionStatus::Running);
        let has_pending = runs && shared.deps.ledger.pending_count(key).await? > 0;
        let subject = Subject::Turn(at.namespace.clone(), at.turn_id.clone());
        let place = head.as_ref().map_or(0, |head| head.next_offset);
        let (what, cure) = match judge_turn(turn, head.as_ref(), has_pending) {
            TurnFinding::Fine => return Ok(()),
            TurnFinding::Asleep => ("a turn was not worked on", Cure::Wake),
            TurnFinding::Abandoned => ("a turn is active whose session has ended", Cure::Unknown),
            TurnFinding::Waits => {
                if self.works(shared, before, key, turn).await? {
                    return Ok(());
                }
                let asks = facts::asks(shared, key, turn).await?;
                if !head.as_ref().is_some_and(|head| is_forgotten(head, asks)) {
                    return Ok(());
                }
                ("a turn waits, and nothing that it waits for is open", Cure::Cancel(turn))
            }
        };
        self.treat(shared, before, Case { key, subject, place, what, cure }).await
    }

    /// Judges what a turn waits for. Answers whether there is anything.
    async fn works(
        &mut self,
        shared: &Shared,
        before: &Suspects,
        key: &SessionKey,
        turn: &Turn,
    ) -> Result<bool, Failure> {
        let works = facts::open_work(shared, key, turn).await?;
        for row in &works {
            let has_executor = self.has_executor(shared).await?;
            let now_ms = shared.deps.clock.now_ms();
            let (finding, place) = facts::judge(shared, row, has_executor, now_ms).await?;
            match finding {
                WorkFinding::Fine => {}
                WorkFinding::Late => self.overdue += 1,
                WorkFinding::WithoutExecutor => self.without_executor += 1,
                WorkFinding::Stuck { why, outcome } => {
                    let id = row.operation.operation_id.clone();
                    let subject = Subject::Operation(row.namespace.clone(), id);
                    let case = Case { key, subject, place, what: why, cure: Cure::End(row, outcome) };
                    self.treat(shared, before, case).await?;
                }
            }
        }
        Ok(!works.is_empty())
    }

    async fn has_executor(&mut self, shared: &Shared) -> Result<bool, Failure> {
        if let Some(known) = self.has_executor {
            return Ok(known);
        }
        let found = facts::has_executor(shared).await?;
        self.has_executor = Some(found);
        Ok(found)
    }

    /// Counts a case that was found twice, does what can be done about it, and says so.
    async fn treat(&mut self, shared: &Shared, before: &Suspects, case: Case<'_>) -> Result<(), Failure> {
        let Case { key, subject, place, what, cure } = case;
        let seen = self.suspects.note(before, key, subject.clone(), place);
        if seen == Seen::First {
            return Ok(());
        }
        if seen == Seen::Second {
            metrics::counter!(metric::INVARIANT_BROKEN, "invariant" => format!("{:?}", Invariant::L1)).increment(1);
        }
        match heal(shared, key, place, &cure).await? {
            Cured::Done => {
                metrics::counter!(metric::SESSIONS_HEALED).increment(1);
                tracing::warn!(session.id = %key, ?subject, found = what, did = cure.done(),
                    "something waited without a cause, and was helped on");
            }
            Cured::Not if seen == Seen::Second => {
                tracing::error!(session.id = %key, ?subject, found = what,
                    "something waits without a cause and cannot be healed; see the runbook sessions_without_cause");
            }
            Cured::Over | Cured::Not => {}
        }
        Ok(())
    }

    /// Sessions with an action that could have moved them long ago; at most a page of each shard.
    pub async fn overdue_actions(&self, shared: &Shared) -> Result<usize, Failure> {
        let shards = shared.deps.leases.shards().await?;
        let age_ms = OVERDUE_MS.unsigned_abs();
        let mut overdue = 0;
        for ShardInfo { shard, .. } in shards {
            overdue += shared.deps.ledger.sessions_with_pending(shard, age_ms, None, PAGE).await?.len();
        }
        Ok(overdue)
    }
}
