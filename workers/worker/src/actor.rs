//! One live session: load → decide → perform → commit, one task per session. It may run ahead of
//! its commits as long as nothing leaves the process (DESIGN 5).

mod calls;
mod commit;
mod contexts;
mod decide;
mod give_up;
mod load;
mod step;
mod wait;

use std::sync::Arc;

use domain::failure::Failure;
use domain::ports::Lease;
use domain::session::{Next, Session};
use schemas::action::{Action, Lane};
use schemas::id::SessionKey;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::runner::Shared;
use calls::Calls;
use commit::InFlight;
use contexts::Contexts;

/// Actions on their way to a session; what does not fit is read from the ledger.
pub(crate) const MAILBOX_MAX: usize = 64;

/// What the actors of one shard share.
pub(crate) struct ShardContext {
    pub shared: Arc<Shared>,
    pub lease: Lease,
    /// Cancelled when the shard is to be given back, or is lost.
    pub hand_over: CancellationToken,
    /// Cancelled when another owns the shard: no effect may start any more.
    pub lost: CancellationToken,
}

impl ShardContext {
    pub fn now_ms(&self) -> i64 {
        self.shared.deps.clock.now_ms()
    }
}

pub(crate) enum Mail {
    Action(Box<Action>),
    /// The ledger may hold something, or a timer is due.
    Nudge,
}

/// Why a session left memory. Everything it did is committed, but for `Reload`, `Refused` and `Fenced`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Nothing to do until its timer or its next action.
    Idle {
        wake_at_ms: Option<i64>,
    },
    /// What it did since the last commit is void: start over from there.
    Reload,
    /// The same, and the store refuses that commit however often it comes.
    Refused(Failure),
    HandedOver,
    /// The shard has another owner.
    Fenced,
    /// There is no such session, or it is not ours any more.
    Gone,
}

/// Ends a session's task early; `?` carries it outward.
pub(crate) type Flow<T = ()> = Result<T, Exit>;

pub(crate) struct Actor {
    context: Arc<ShardContext>,
    key: SessionKey,
    mailbox: mpsc::Receiver<Mail>,
}

/// An actor with its session in memory.
struct Live {
    context: Arc<ShardContext>,
    mailbox: mpsc::Receiver<Mail>,
    session: Session,
    in_flight: InFlight,
    calls: Calls,
    contexts: Contexts,
    /// Found at load: an effect was sent and its answer is not known (invariant E2).
    in_doubt: Option<String>,
    /// When a stop that was asked for waits no longer for the calls under way.
    stops_by: Option<Instant>,
}

impl Actor {
    pub fn new(context: Arc<ShardContext>, key: SessionKey, mailbox: mpsc::Receiver<Mail>) -> Self {
        Self { context, key, mailbox }
    }

    pub async fn run(mut self) -> Exit {
        let first = self.mailbox.try_recv().ok();
        let loaded = tokio::select! {
            biased;
            () = self.context.hand_over.cancelled() => return Exit::HandedOver,
            loaded = load::load(&self.context, &self.key, first.as_ref()) => loaded,
        };
        let (session, in_doubt) = match loaded {
            Ok(loaded) => loaded,
            Err(exit) => return exit,
        };
        let in_flight = InFlight::new();
        let (calls, contexts) = (Calls::default(), Contexts::default());
        let (context, mailbox) = (self.context, self.mailbox);
        let mut live = Live { context, mailbox, session, in_flight, calls, contexts, in_doubt, stops_by: None };
        first.into_iter().for_each(|mail| live.admit(mail));
        let ended = live.run().await;
        match ended {
            Ok(exit) => exit,
            Err(Exit::Refused(failure)) => live.give_up(failure).await,
            Err(exit) => exit,
        }
    }
}

impl Live {
    async fn run(&mut self) -> Flow<Exit> {
        loop {
            self.read_mail();
            self.read_ledger().await;
            if self.context.hand_over.is_cancelled() {
                self.save_all().await?;
                return Ok(Exit::HandedOver);
            }
            self.session.set_calling(self.calls.is_open());
            let is_stop_held = self.holds_stop();
            self.session.hold_stop(is_stop_held);
            match self.session.boundary(self.context.now_ms()) {
                Next::Step => self.step().await?,
                Next::Wait { until_ms } => self.wait(until_ms).await?,
                Next::Rest => self.rest().await?,
            }
        }
    }

    /// Takes what has come, without waiting.
    fn read_mail(&mut self) {
        while let Ok(mail) = self.mailbox.try_recv() {
            self.admit(mail);
        }
    }

    fn admit(&mut self, mail: Mail) {
        match mail {
            Mail::Action(action) => {
                self.session.admit(*action);
            }
            Mail::Nudge => {
                self.session.inbox(Lane::Control).suspect();
                self.session.inbox(Lane::Work).suspect();
            }
        }
        // A mailbox that was full has dropped mail that the ledger still has.
        if self.mailbox.len() + 1 >= MAILBOX_MAX {
            self.session.inbox(Lane::Control).suspect();
            self.session.inbox(Lane::Work).suspect();
        }
    }

    /// Fills gaps of the lanes from the ledger. A failure leaves them as they are: the shard's
    /// next scan nudges again.
    async fn read_ledger(&mut self) {
        for lane in Lane::ALL {
            let Some((after, limit)) = self.session.inbox(lane).wants() else { continue };
            match self.context.shared.deps.ledger.pending(&self.session.key, lane, after, limit).await {
                Ok(pending) => self.session.inbox(lane).refill(pending.actions, pending.last_seq, limit),
                Err(failure) => {
                    tracing::debug!(%failure, session.id = %self.session.key, "cannot read the ledger");
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                }
            }
        }
    }

    /// At rest: refuses what still waits for it, commits, leaves memory.
    async fn rest(&mut self) -> Flow {
        loop {
            self.session.refuse_leftovers(self.context.now_ms());
            self.save_all().await?;
            let is_final = self.session.head().status.is_final();
            if !is_final || Lane::ALL.into_iter().all(|lane| self.session.inbox(lane).wants().is_none()) {
                break;
            }
            self.read_ledger().await;
            if Lane::ALL.into_iter().all(|lane| self.session.inbox(lane).is_empty()) {
                break;
            }
        }
        // Mail that came meanwhile (a resume of a failed session) is looked at before leaving.
        match self.mailbox.try_recv() {
            Ok(mail) => {
                self.admit(mail);
                Ok(())
            }
            Err(_) => Err(Exit::Idle { wake_at_ms: None }),
        }
    }
}

#[cfg(test)]
mod tests;
