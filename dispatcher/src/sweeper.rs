//! Publishes again what was accepted and never reached the queue: its gateway died in between, or
//! the broker was away. One gateway of a fleet does it at a time.

use std::time::Duration;

use domain::outage::Outage;
use domain::retry;
use schemas::action::Action;
use schemas::id::WorkerId;
use schemas::limits::{ACCEPT_BATCH_MAX, ROLE_LEASE_MS};
use tokio::time::Instant;
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
    let (mut outage, begun) = (Outage::default(), Instant::now());
    let mut failures = 0;
    loop {
        let found = sweep(&gateway, &me).await;
        if let Some(left_out) = outage.see(found.is_err(), begun.elapsed()) {
            match &found {
                Ok(_) => tracing::debug!(left_out, "sweeping works again"),
                Err(message) => tracing::warn!(error = %message, left_out, "sweeping failed; trying on"),
            }
        }
        let wait = match found {
            // More may be waiting.
            Ok(found) if found == ACCEPT_BATCH_MAX => Duration::ZERO,
            Ok(_) => {
                failures = 0;
                INTERVAL
            }
            Err(_) => {
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

/// One look; returns how many were published.
async fn sweep(gateway: &Gateway, me: &WorkerId) -> Result<usize, String> {
    let found = gateway.ledger.unpublished(AGE_MS, ACCEPT_BATCH_MAX).await.map_err(|failure| failure.message)?;
    if found.is_empty() {
        return Ok(0);
    }
    let role = gateway.leases.hold_role(ROLE, me, ROLE_LEASE_MS).await.map_err(|failure| failure.message)?;
    if role.is_none() {
        // Another gateway is at it.
        return Ok(0);
    }
    gateway.queue.publish(&found).await.map_err(|failure| failure.message)?;
    let ids: Vec<_> =
        found.iter().map(|action: &Action| (action.namespace.clone(), action.action_id.clone())).collect();
    gateway.ledger.mark_published(&ids).await.map_err(|failure| failure.message)?;
    tracing::info!(actions = found.len(), "published what had been left");
    Ok(found.len())
}
