//! Publishes again what was accepted and never reached the queue: its gateway died in between, or
//! the broker was away. One gateway of a fleet does it at a time.

use std::time::Duration;

use domain::failure::Failure;
use domain::retry;
use schemas::action::Action;
use schemas::id::WorkerId;
use schemas::limits::{ACCEPT_BATCH_MAX, ROLE_LEASE_MS};
use tokio_util::sync::CancellationToken;

use crate::gateway::Gateway;

/// Younger actions are still on the publisher's way.
const AGE_MS: u64 = 1_000;
const INTERVAL: Duration = Duration::from_secs(1);
/// Taken only when there is something to publish.
const ROLE: &str = "sweeper";

/// The sweeper's task.
pub async fn run(gateway: Gateway, stop: CancellationToken) {
    let me: WorkerId = gateway.fresh_id();
    let mut failures = 0;
    loop {
        let wait = match sweep(&gateway, &me).await {
            // More may be waiting.
            Some(ACCEPT_BATCH_MAX) => Duration::ZERO,
            Some(_) => {
                failures = 0;
                INTERVAL
            }
            None => {
                failures += 1;
                INTERVAL + Duration::from_millis(retry::STORE.delay_ms(failures).unwrap_or(1_000))
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// One look; returns how many were published. `None`: the store or the broker did not take part.
async fn sweep(gateway: &Gateway, me: &WorkerId) -> Option<usize> {
    let found = of_store(find(gateway, me).await)?;
    if found.is_empty() {
        return Some(0);
    }
    if let Err(failure) = gateway.queue.publish(&found).await {
        // The publisher tells of a queue that takes nothing, and whoever keeps the connection of one that is away.
        tracing::debug!(%failure, actions = found.len(), "cannot publish what had been left; trying on");
        return None;
    }
    let ids: Vec<_> = found.into_iter().map(|action| (action.namespace, action.action_id)).collect();
    of_store(gateway.ledger.mark_published(&ids).await)?;
    tracing::info!(actions = ids.len(), "published what had been left");
    Some(ids.len())
}

/// What never reached the queue; nothing if another gateway is at it.
async fn find(gateway: &Gateway, me: &WorkerId) -> Result<Vec<Action>, Failure> {
    let found = gateway.ledger.unpublished(AGE_MS, ACCEPT_BATCH_MAX).await?;
    if found.is_empty() || gateway.leases.hold_role(ROLE, me, ROLE_LEASE_MS).await?.is_some() {
        return Ok(found);
    }
    Ok(Vec::new())
}

fn of_store<T>(answer: Result<T, Failure>) -> Option<T> {
    match &answer {
        Ok(_) => host::stall::clear(),
        Err(failure) => host::stall::note("actions that never reached the queue", failure),
    }
    answer.ok()
}
