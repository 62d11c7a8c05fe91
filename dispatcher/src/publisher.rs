//! Hands accepted actions to the queue, off the path of the answer: they are durable already, and
//! what does not get through is found in the ledger (DESIGN 1, idea 1).

use std::time::Duration;

use host::trace::{self, Stage};
use schemas::action::Action;
use schemas::id::{ActionId, Namespace};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::gateway::Gateway;

/// Actions on their way to the queue.
const WAITING_MAX: usize = 4_096;
const BATCH_MAX: usize = 256;
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
    let mut notes = Vec::new();
    let mut batch = Vec::with_capacity(BATCH_MAX);
    let mut down = false;
    let mut flush = tokio::time::interval(NOTE_AFTER);
    flush.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            _ = accepted.recv_many(&mut batch, BATCH_MAX) => {
                publish(&gateway, &batch, &mut notes, &mut down).await;
                batch.clear();
            }
            _ = flush.tick(), if !notes.is_empty() => note(&gateway, &mut notes).await,
        }
        if notes.len() >= NOTES_MAX {
            note(&gateway, &mut notes).await;
        }
    }
    // What was accepted before the end need not wait for a sweeper.
    while batch.len() < WAITING_MAX
        && let Ok(action) = accepted.try_recv()
    {
        batch.push(action);
    }
    if !batch.is_empty() {
        publish(&gateway, &batch, &mut notes, &mut down).await;
    }
    note(&gateway, &mut notes).await;
}

async fn publish(gateway: &Gateway, batch: &[Action], notes: &mut Vec<(Namespace, ActionId)>, down: &mut bool) {
    let begun = trace::begin();
    match gateway.queue.publish(batch).await {
        Ok(()) => {
            for action in batch {
                let shard = || [("stepfleet.shard", action.shard.to_string())];
                trace::end(begun, Stage::Publish, &action.namespace, &action.action_id, shard);
            }
            if std::mem::take(down) {
                tracing::info!("the queue takes actions again");
            }
            if gateway.queue.is_durable() {
                notes.extend(batch.iter().map(|action| (action.namespace.clone(), action.action_id.clone())));
            }
        }
        Err(failure) => {
            if !std::mem::replace(down, true) {
                tracing::warn!(error = %failure.message, "the queue does not take actions; workers poll the ledger");
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
        tracing::warn!(error = %failure.message, "publications could not be noted");
    }
    notes.clear();
}
