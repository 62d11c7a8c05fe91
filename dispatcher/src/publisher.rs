//! Hands accepted actions to the queue, off the path of the answer: they are durable already, and
//! what does not get through is found in the ledger (DESIGN 1, idea 1).

use std::time::Duration;

use domain::failure::Failure;
use domain::outage::Outage;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use host::trace::{self, Stage};
use schemas::action::Action;
use schemas::id::{ActionId, Namespace};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::gateway::Gateway;

/// Actions on their way to the queue.
const WAITING_MAX: usize = 4_096;
const BATCH_MAX: usize = 256;
/// Batches that wait for the broker's word at a time: what comes meanwhile need not wait for it, and
/// when much comes, batches grow.
const FLIGHTS_MAX: usize = 4;
/// Publications noted in one transaction: each is a write, so they are gathered.
const NOTES_MAX: usize = 512;
/// How long a publication may stay unnoted; below the age at which the sweeper publishes again.
const NOTE_AFTER: Duration = Duration::from_millis(250);

pub struct Publisher(mpsc::Sender<Action>);

impl Publisher {
    pub fn new() -> (Self, mpsc::Receiver<Action>) {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        (Self(sender), receiver)
    }

    /// Never waits. If the queue is too slow, the owner of the shard finds the action by itself.
    pub fn offer(&self, action: Action) {
        if let Err(error) = self.0.try_send(action) {
            let action = error.into_inner();
            tracing::debug!(action.id = %action.action_id, "left to the sweeper");
        }
    }
}

/// The publisher's task.
pub async fn run(gateway: Gateway, mut accepted: mpsc::Receiver<Action>, stop: CancellationToken) {
    let mut landing = Landing { notes: Vec::new(), begun: Instant::now(), refusals: Outage::default() };
    let mut batch = Vec::with_capacity(BATCH_MAX);
    let mut flights = FuturesUnordered::new();
    let mut flush = tokio::time::interval(NOTE_AFTER);
    flush.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            count = accepted.recv_many(&mut batch, BATCH_MAX), if flights.len() < FLIGHTS_MAX => {
                if count > 0 {
                    flights.push(publish(&gateway, batch.split_off(0)));
                }
            }
            Some((batch, outcome)) = flights.next(), if !flights.is_empty() => {
                landing.land(&gateway, &batch, outcome).await;
            }
            _ = flush.tick(), if !landing.notes.is_empty() => note(&gateway, &mut landing.notes).await,
        }
        if landing.notes.len() >= NOTES_MAX {
            note(&gateway, &mut landing.notes).await;
        }
    }
    // What was accepted before the end need not wait for a sweeper.
    while batch.len() < WAITING_MAX
        && let Ok(action) = accepted.try_recv()
    {
        batch.push(action);
    }
    if !batch.is_empty() {
        flights.push(publish(&gateway, batch));
    }
    while let Some((batch, outcome)) = flights.next().await {
        landing.land(&gateway, &batch, outcome).await;
    }
    note(&gateway, &mut landing.notes).await;
}

async fn publish(gateway: &Gateway, batch: Vec<Action>) -> (Vec<Action>, Result<(), Failure>) {
    let begun = trace::begin();
    let outcome = gateway.queue.publish(&batch).await;
    if outcome.is_ok() {
        for action in &batch {
            let shard = || [("stepfleet.shard", action.shard.to_string())];
            trace::end(begun, Stage::Publish, &action.namespace, &action.action_id, shard);
        }
    }
    (batch, outcome)
}

/// What became of batches.
struct Landing {
    /// Publications that the ledger does not know of yet.
    notes: Vec<(Namespace, ActionId)>,
    begun: Instant,
    /// Of a queue that is there.
    refusals: Outage,
}

impl Landing {
    async fn land(&mut self, gateway: &Gateway, batch: &[Action], outcome: Result<(), Failure>) {
        let now = self.begun.elapsed();
        match outcome {
            Ok(()) => {
                if let Some(left_out) = self.refusals.see(false, now) {
                    tracing::info!(left_out, "the queue takes actions again");
                }
                if gateway.queue.is_durable() {
                    let noted = batch.iter().map(|action| (action.namespace.clone(), action.action_id.clone()));
                    self.notes.extend(noted);
                }
            }
            // Whoever keeps the connection tells of it.
            Err(failure) if gateway.queue.ping().await.is_err() => {
                tracing::debug!(%failure, "there is no queue at present; workers poll the ledger");
            }
            Err(failure) => {
                if let Some(left_out) = self.refusals.see(true, now) {
                    tracing::warn!(
                        service = "queue",
                        error = %failure.message,
                        left_out,
                        "the queue does not take actions; workers poll the ledger"
                    );
                }
            }
        }
    }
}

/// A note that is lost costs one more publication, no more.
async fn note(gateway: &Gateway, notes: &mut Vec<(Namespace, ActionId)>) {
    if notes.is_empty() {
        return;
    }
    if let Err(failure) = gateway.ledger.mark_published(notes).await {
        host::stall::note("notes of publications", &failure);
    }
    notes.clear();
}
