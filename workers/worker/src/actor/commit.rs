//! Commits of one session: at most one in flight, what is done meanwhile goes with the next.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use domain::commit::{Commit, CommitResult};
use domain::moniker;
use domain::ports::{ConversationKey, News, Notice};
use futures::FutureExt;
use host::trace::{self, Stage};
use schemas::id::SessionKey;
use schemas::telemetry::metric;
use tokio::time::Instant;

use super::{Exit, Flow, Live, ShardContext, load};
use crate::outgoing;

/// Steps that follow each other within this time may share a commit.
const TOGETHER: Duration = Duration::from_millis(5);

/// Refusals of a commit after which the store is asked whether it takes others.
const REFUSALS_MAX: u32 = 5;

type Reply = Pin<Box<dyn Future<Output = Flow> + Send>>;

/// Longest that what is unsaved waits for a call that reads ahead of it.
const HELD: Duration = Duration::from_millis(20);

/// The commit that is under way, if any.
pub(super) struct InFlight {
    reply: Option<Reply>,
    /// When the last one began, or the session came into memory.
    begun: Instant,
    /// Until when the next one waits for an answer that is to go with it.
    held_until: Option<Instant>,
}

impl InFlight {
    pub fn new() -> Self {
        Self { reply: None, begun: Instant::now(), held_until: None }
    }

    pub fn is_none(&self) -> bool {
        self.reply.is_none()
    }

    /// The next commit waits for the answer of a call that has just started, but not for long.
    pub fn hold(&mut self) {
        self.held_until = Some(Instant::now() + HELD);
    }

    /// Until when the next commit waits.
    pub fn held_until(&self) -> Option<Instant> {
        self.held_until
    }

    /// Resolves when the commit under way is answered; pends if there is none. Cancel safe.
    pub async fn answered(&mut self) -> Flow {
        match &mut self.reply {
            None => std::future::pending().await,
            Some(reply) => {
                let answer = reply.await;
                self.reply = None;
                answer
            }
        }
    }

    /// Takes the answer if it is there.
    fn try_answered(&mut self) -> Flow {
        match self.reply.as_mut().and_then(|reply| reply.now_or_never()) {
            None => Ok(()),
            Some(answer) => {
                self.reply = None;
                answer
            }
        }
    }
}

impl Live {
    /// Sends what is unsaved, unless that was done a moment ago. A session whose steps take
    /// microseconds makes one commit of many of them, and of its creation; what a step has to wait
    /// for, or a person, is saved at once, elsewhere.
    pub(super) fn save_in_time(&mut self) -> Flow {
        if self.in_flight.begun.elapsed() < TOGETHER { Ok(()) } else { self.save() }
    }

    /// Sends what is unsaved, unless a commit is under way already.
    pub(super) fn save(&mut self) -> Flow {
        self.in_flight.held_until = None;
        self.in_flight.try_answered()?;
        if self.in_flight.is_none() && self.session.is_dirty() {
            self.in_flight.begun = Instant::now();
            let commit = self.session.take_commit(self.context.lease.epoch, self.context.now_ms());
            let mut reply: Reply = Box::pin(commit_durably(self.context.clone(), commit));
            // The first poll hands it to the store.
            match (&mut reply).now_or_never() {
                Some(answer) => answer?,
                None => self.in_flight.reply = Some(reply),
            }
        }
        Ok(())
    }

    /// Returns once everything done so far is durable. Nothing may leave before (invariant E1).
    pub(super) async fn save_all(&mut self) -> Flow {
        loop {
            self.save()?;
            if self.in_flight.is_none() {
                return Ok(());
            }
            self.in_flight.answered().await?;
        }
    }
}

/// Commits, for as long as it takes; then lets the notices out. Ends early if the store goes on taking
/// commits of this session, and refuses this one.
async fn commit_durably(context: Arc<ShardContext>, commit: Commit) -> Flow {
    let (mut refusals, mut takes_others) = (0, false);
    let deps = &context.shared.deps;
    let (started, begun) = (Instant::now(), trace::begin());
    let mut attempt = 0;
    loop {
        let failure = match deps.commits.commit(&context.shared.config.worker, vec![commit.clone()]).await {
            Ok(results) => match results.into_iter().next() {
                Some(CommitResult::Done { follow_ups, .. }) => {
                    metrics::histogram!(metric::COMMIT_SECONDS).record(started.elapsed().as_secs_f64());
                    host::stall::clear();
                    count_done(&commit);
                    note_applied(&context, begun, &commit);
                    outgoing::note_accepted(begun, &context.shared.config.worker, &follow_ups);
                    let_out(&context, &commit, &follow_ups).await;
                    return Ok(());
                }
                Some(CommitResult::Fenced) => {
                    metrics::counter!(metric::COMMITS_FENCED).increment(1);
                    // As many as the shard has sessions; that the shard is lost is told once.
                    tracing::debug!(session.id = %commit.key, epoch = %commit.epoch, "a commit was fenced");
                    return Err(Exit::Fenced);
                }
                // After an attempt in doubt this is our own commit; either way the database knows best.
                Some(CommitResult::Conflict) | None => return Err(Exit::Reload),
            },
            Err(failure) => failure,
        };
        attempt += 1;
        if failure.retriable {
            host::stall::note("sessions", &failure);
        } else if refusals == 0 {
            tracing::warn!(%failure, session.id = %commit.key, "cannot commit; will go on trying");
        }
        refusals = if failure.retriable { 0 } else { refusals + 1 };
        if takes_others && refusals > 0 {
            return Err(Exit::Refused(failure));
        }
        if context.hand_over.is_cancelled()
            && started.elapsed() > Duration::from_millis(context.shared.config.drain_grace_ms)
        {
            return Err(Exit::HandedOver);
        }
        // Asked before the last try: a store that takes nothing at present is waited for.
        takes_others = refusals >= REFUSALS_MAX && takes_commits(&context, &commit.key).await;
        tokio::time::sleep(Duration::from_millis(domain::retry::STORE.delay_ms(attempt).unwrap_or(1_000))).await;
    }
}

/// Whether the store takes a commit of this session that leaves everything as it is.
async fn takes_commits(context: &ShardContext, key: &SessionKey) -> bool {
    let Ok(Some((mut session, _))) = load::try_load(context, key).await else { return false };
    let head = session.head().clone();
    let mut commit = session.take_commit(context.lease.epoch, head.updated_at_ms);
    Arc::make_mut(&mut commit.entry).head = head;
    let committed = context.shared.deps.commits.commit(&context.shared.config.worker, vec![commit]).await;
    matches!(committed.as_deref(), Ok([CommitResult::Done { .. }]))
}

/// Counts what a commit has made durable. Monikers are those of this build, so labels are few.
fn count_done(commit: &Commit) {
    let moniker = moniker::find(&commit.entry.moniker).map_or("unknown", |moniker| moniker.name());
    for (status, steps) in tally(commit.entry.steps.iter().map(|step| step.status.as_str())) {
        metrics::counter!(metric::STEPS, "moniker" => moniker, "status" => status).increment(steps);
    }
    for (outcome, actions) in tally(commit.settled.iter().map(|settled| settled.outcome.as_str())) {
        metrics::counter!(metric::ACTIONS_PROCESSED, "outcome" => outcome).increment(actions);
    }
}

/// How often each name comes.
fn tally(names: impl Iterator<Item = &'static str>) -> BTreeMap<&'static str, u64> {
    let mut found = BTreeMap::new();
    for name in names {
        *found.entry(name).or_insert(0) += 1;
    }
    found
}

/// Notes in the trace of each action that this commit has settled it.
fn note_applied(context: &ShardContext, begun: Option<SystemTime>, commit: &Commit) {
    for settled in &commit.settled {
        trace::end(begun, Stage::Apply, &commit.key.namespace, &settled.action_id, || {
            [
                ("stepfleet.session_id", commit.key.session_id.to_string()),
                ("stepfleet.outcome", settled.outcome.as_str().to_owned()),
                ("stepfleet.worker_id", context.shared.config.worker.to_string()),
            ]
        });
    }
}

async fn let_out(context: &ShardContext, commit: &Commit, follow_ups: &[schemas::action::Action]) {
    let deps = &context.shared.deps;
    deps.live.publish(vec![Notice::of(commit.key.clone(), commit.entry.clone())]);
    if let Some(conversation_id) = commit.entry.conversation_id.clone()
        && !commit.talk.is_empty()
    {
        let key = ConversationKey { namespace: commit.key.namespace.clone(), conversation_id };
        deps.live.tell(&key, News::Logged);
    }
    if !follow_ups.is_empty() {
        outgoing::publish(deps.queue.as_ref(), follow_ups).await;
    }
}
