//! Looking for sessions that have something to do and are not in memory: in the ledger and among
//! the timers. A shard is taken over with it, and what the queue loses is found by it. A look runs
//! beside deliveries: a slow database must not make them wait.

use std::pin::Pin;
use std::sync::Arc;

use domain::failure::Failure;
use schemas::id::SessionKey;

use super::ShardTask;
use crate::actor::{Mail, ShardContext};

/// Rows of one page of a scan, and pages of one tick.
const SCAN_PAGE: usize = 256;
const SCAN_PAGES_MAX: usize = 16;

/// What a look found.
#[derive(Default)]
pub(super) struct Found {
    pending: Vec<SessionKey>,
    due: Vec<(i64, SessionKey)>,
    /// Up to when the timers were looked at; `None`: they could not be read.
    until_ms: Option<i64>,
}

/// The look that is under way, if any.
#[derive(Default)]
pub(super) struct Scan(Option<Pin<Box<dyn Future<Output = Found> + Send>>>);

impl Scan {
    /// Begins to look, unless it is at it.
    pub fn begin(&mut self, context: &Arc<ShardContext>, older_than_ms: u64) {
        if self.0.is_none() {
            self.0 = Some(Box::pin(look(context.clone(), older_than_ms)));
        }
    }

    /// What was found; pends when nobody looks. Cancel safe.
    pub async fn found(&mut self) -> Found {
        let Some(looking) = &mut self.0 else { return std::future::pending().await };
        let found = looking.await;
        self.0 = None;
        found
    }
}

async fn look(context: Arc<ShardContext>, older_than_ms: u64) -> Found {
    let mut found = Found::default();
    if let Err(failure) = look_for_pending(&context, older_than_ms, &mut found).await {
        tracing::debug!(%failure, "cannot scan the ledger");
        return found;
    }
    if let Err(failure) = look_for_due(&context, &mut found).await {
        tracing::debug!(%failure, "cannot scan the timers");
    }
    found
}

async fn look_for_pending(context: &ShardContext, older_than_ms: u64, found: &mut Found) -> Result<(), Failure> {
    let ledger = &context.shared.deps.ledger;
    for _ in 0..SCAN_PAGES_MAX {
        let after = found.pending.last().map(|key| (key.namespace.clone(), key.session_id.clone()));
        let page = ledger.sessions_with_pending(context.lease.shard, older_than_ms, after, SCAN_PAGE).await?;
        let is_last = page.len() < SCAN_PAGE;
        found.pending.extend(page);
        if is_last {
            break;
        }
    }
    Ok(())
}

async fn look_for_due(context: &ShardContext, found: &mut Found) -> Result<(), Failure> {
    let sessions = &context.shared.deps.sessions;
    let horizon = context.now_ms() + 2 * context.shared.config.poll_ms as i64;
    for _ in 0..SCAN_PAGES_MAX {
        let after = found.due.last().cloned();
        let page = sessions.due(context.lease.shard, horizon, after, SCAN_PAGE).await?;
        let is_last = page.len() < SCAN_PAGE;
        found.due.extend(page);
        if is_last {
            break;
        }
    }
    found.until_ms = Some(horizon);
    Ok(())
}

impl ShardTask {
    /// Takes up what a look found, as far as it is not in memory already.
    pub(super) fn take_up(&mut self, found: Found) {
        for key in found.pending {
            self.send(key, Mail::Nudge);
        }
        // What is due later is found by a later look, so it need not be remembered.
        if let Some(until_ms) = found.until_ms {
            self.schedule.forget_beyond(until_ms);
        }
        for (at, key) in found.due {
            if !self.actors.contains_key(&key) {
                self.schedule.add(at, key);
            }
        }
        self.wake_due();
    }
}
