//! What others put straight on a shard's queue. It is accepted into the ledger like everything else,
//! which says where it belongs, or it is buried with the reason. Nothing behind it waits.

use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use domain::action::foreign::{Ids, parse, reason_of, refusal_of};
use domain::failure::Failure;
use domain::outage::Seldom;
use domain::ports::{Foreign, Verdict};
use host::trace;
use schemas::action::{Action, NewAction};
use schemas::limits::DELIVERIES_MAX;
use tokio::time::sleep;

use super::lanes::Place;
use crate::actor::ShardContext;
use crate::outgoing;

/// How the acceptance of some messages ended.
pub(super) struct Done {
    pub places: Vec<Place>,
    /// In the order of the places. A failure is one that no repeat would mend.
    pub verdicts: Vec<Result<Verdict, Failure>>,
}

type Accepting = Pin<Box<dyn Future<Output = Done> + Send>>;

/// Messages on their way into the ledger: one batch at a time, what comes meanwhile goes with the next.
pub(super) struct Foreigners {
    context: Arc<ShardContext>,
    waiting: Vec<(Place, NewAction)>,
    accepting: Option<Accepting>,
    seen: u64,
}

impl Foreigners {
    pub fn new(context: Arc<ShardContext>) -> Self {
        Self { context, waiting: Vec::new(), accepting: None, seen: 0 }
    }

    /// Takes a message; `Err` = why it must be buried.
    pub fn take(&mut self, place: Place, foreign: &Foreign) -> Result<(), String> {
        self.seen += 1;
        let (lease, worker) = (&self.context.lease, &self.context.shared.config.worker);
        // Unique: of this worker's claim of this shard, this is the nth.
        let seed = format!("{worker}/{}/{}/{}", lease.shard, lease.epoch, self.seen);
        let action = parse(&foreign.body, foreign.message_id.as_deref(), Ids::from_seed(&seed))
            .map_err(|problem| reason_of(&problem))?;
        // The broker hands out no more than this without an acknowledgement.
        if self.waiting.len() >= 2 * DELIVERIES_MAX {
            return Err("too many messages of others wait for the ledger; send it to stepfleet.ingress".into());
        }
        self.waiting.push((place, action));
        self.start();
        Ok(())
    }

    /// The end of the batch under way; pends if there is none. Cancel safe.
    pub async fn done(&mut self) -> Done {
        match &mut self.accepting {
            None => std::future::pending().await,
            Some(accepting) => {
                let done = accepting.await;
                self.accepting = None;
                self.start();
                done
            }
        }
    }

    fn start(&mut self) {
        if self.accepting.is_none() && !self.waiting.is_empty() {
            let (places, actions) = std::mem::take(&mut self.waiting).into_iter().unzip();
            self.accepting = Some(Box::pin(accept(self.context.clone(), places, actions)));
        }
    }
}

/// Others may write what they like, and as much; all of it is among the dead letters, each with its reason.
static BURIED: LazyLock<(Instant, Mutex<Seldom>)> = LazyLock::new(|| (Instant::now(), Mutex::default()));

pub(super) fn tell_buried(context: &ShardContext, reason: &str) {
    let shard = context.lease.shard;
    let (begun, told) = &*BURIED;
    let line = told.lock().unwrap_or_else(PoisonError::into_inner).see(begun.elapsed());
    match line {
        Some(left_out) => tracing::warn!(%shard, reason, left_out, "buried a message of another program"),
        None => tracing::debug!(%shard, reason, "buried a message of another program"),
    }
}

/// Accepts and publishes, for as long as it takes. One that the ledger cannot take, however often
/// it is offered, does not hold up the others.
async fn accept(context: Arc<ShardContext>, places: Vec<Place>, actions: Vec<NewAction>) -> Done {
    let begun = trace::begin();
    let mut verdicts: Vec<Result<Verdict, Failure>> = match offer(&context, actions.clone()).await {
        Ok(verdicts) => verdicts.into_iter().map(Ok).collect(),
        Err(failure) if actions.len() == 1 => vec![Err(failure)],
        Err(_) => Vec::new(),
    };
    if verdicts.is_empty() {
        for action in actions {
            let alone = offer(&context, vec![action]).await;
            let none = || Failure::internal("the ledger gave no verdict");
            verdicts.push(alone.and_then(|one| one.into_iter().next().ok_or_else(none)));
        }
    }
    outgoing::note_accepted(begun, &context.shared.config.worker, verdicts.iter().filter_map(new_action));
    // What ended with its acceptance has no place, and goes nowhere.
    let new = verdicts.iter().filter_map(new_action).filter(|action| action.session_seq > 0).cloned().collect();
    publish(&context, new).await;
    Done { places, verdicts }
}

/// `Err`: trying on would not help.
async fn offer(context: &ShardContext, actions: Vec<NewAction>) -> Result<Vec<Verdict>, Failure> {
    let mut attempt = 0;
    loop {
        match context.shared.deps.ledger.accept(actions.clone()).await {
            Ok(verdicts) => return Ok(verdicts),
            Err(failure) if !failure.retriable => return Err(failure),
            Err(failure) => {
                attempt += 1;
                host::stall::note("messages of other programs", &failure);
            }
        }
        sleep(Duration::from_millis(domain::retry::STORE.delay_ms(attempt).unwrap_or(1_000))).await;
    }
}

async fn publish(context: &ShardContext, accepted: Vec<Action>) {
    if accepted.is_empty() {
        return;
    }
    let deps = &context.shared.deps;
    outgoing::publish_and_note(deps.queue.as_ref(), deps.ledger.as_ref(), accepted).await;
}

/// What was accepted just now.
fn new_action(verdict: &Result<Verdict, Failure>) -> Option<&Action> {
    match verdict {
        Ok(Verdict::Accepted(accepted)) => Some(&accepted.action),
        _ => None,
    }
}

/// What becomes of each message: `None` = acknowledged, else buried with this reason. A burial may take its time,
/// so they come last.
pub(super) fn reasons(done: Done) -> Vec<(Place, Option<String>)> {
    let reason = |verdict: Result<Verdict, Failure>| match verdict {
        Ok(Verdict::Accepted(_) | Verdict::Repeated(_)) => None,
        Ok(Verdict::Refused(refusal)) => Some(refusal_of(refusal.code, &refusal.detail)),
        Err(failure) => Some(failure.to_string()),
    };
    let mut reasons: Vec<_> = done.places.into_iter().zip(done.verdicts.into_iter().map(reason)).collect();
    reasons.sort_by_key(|(_, reason)| reason.is_some());
    reasons
}
