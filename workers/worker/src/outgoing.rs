//! Actions that the ledger has, on their way to the owners of their sessions. That is a hint: an owner finds in the
//! ledger what gets lost, so nobody waits for the broker for long.

use std::time::{Duration, SystemTime};

use domain::failure::Failure;
use domain::ports::{Ledger, Queue};
use host::trace::{self, Stage};
use schemas::action::Action;
use schemas::id::WorkerId;

/// How long the broker's word is waited for, which takes milliseconds. One that is frozen, or was cut off without a
/// word, is found out within seconds only, and would hold up every step that tells others something until then.
const WORD_MAX: Duration = Duration::from_millis(250);

/// Notes in the trace of each that this worker has accepted it: no gateway did, and a trace begins with that.
pub(crate) fn note_accepted<'a>(
    begun: Option<SystemTime>,
    worker: &WorkerId,
    actions: impl IntoIterator<Item = &'a Action>,
) {
    for action in actions {
        trace::end(begun, Stage::Accept, &action.namespace, &action.action_id, || {
            [
                ("stepfleet.session_id", action.session_id.to_string()),
                ("stepfleet.action_type", action.kind.as_str().to_owned()),
                ("stepfleet.worker_id", worker.to_string()),
            ]
        });
    }
}

/// Hands them over; `true`: the queue has them for sure.
pub(crate) async fn publish(queue: &dyn Queue, actions: &[Action]) -> bool {
    let begun = trace::begin();
    let published = tokio::time::timeout(WORD_MAX, queue.publish(actions)).await;
    let late = |_| Err(Failure::in_doubt(format!("no word of the broker within {WORD_MAX:?}")));
    match published.unwrap_or_else(late) {
        Ok(()) => {
            note_published(begun, queue, actions);
            true
        }
        Err(failure) => {
            tracing::debug!(%failure, actions = actions.len(), "not queued for sure; the owners find them");
            false
        }
    }
}

/// A queue in this process has no way that would be worth a span.
fn note_published(begun: Option<SystemTime>, queue: &dyn Queue, actions: &[Action]) {
    for action in actions.iter().filter(|_| queue.is_durable()) {
        let shard = || [("stepfleet.shard", action.shard.to_string())];
        trace::end(begun, Stage::Publish, &action.namespace, &action.action_id, shard);
    }
}

/// The same, and notes it where it counts, so that nobody publishes them again.
pub(crate) async fn publish_and_note(queue: &dyn Queue, ledger: &dyn Ledger, actions: Vec<Action>) {
    if !publish(queue, &actions).await || !queue.is_durable() {
        return;
    }
    let ids: Vec<_> = actions.into_iter().map(|action| (action.namespace, action.action_id)).collect();
    if let Err(failure) = ledger.mark_published(&ids).await {
        tracing::debug!(%failure, actions = ids.len(), "published once more than needed");
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use domain::ports::Deliveries;
    use schemas::action::Lane;
    use schemas::id::Shard;
    use testkit::contract::queue::input;
    use tokio::time::Instant;

    use super::*;

    /// A broker that takes all and confirms nothing.
    struct Frozen;

    #[async_trait]
    impl Queue for Frozen {
        async fn publish(&self, _actions: &[Action]) -> Result<(), Failure> {
            std::future::pending().await
        }

        async fn consume(&self, _shard: Shard, _lane: Lane) -> Result<Box<dyn Deliveries>, Failure> {
            std::future::pending().await
        }

        async fn consume_ingress(&self) -> Result<Box<dyn Deliveries>, Failure> {
            std::future::pending().await
        }

        async fn ping(&self) -> Result<(), Failure> {
            Ok(())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_frozen_broker_holds_nobody_up() {
        let begun = Instant::now();
        assert!(!publish(&Frozen, &[input(0, 1)]).await);
        assert!(begun.elapsed() < WORD_MAX * 2, "{:?}", begun.elapsed());
    }
}
