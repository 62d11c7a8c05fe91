//! Looking for sessions that have something to do and are not in memory: in the ledger and among
//! the timers. A shard is taken over with it, and what the queue loses is found by it.

use domain::failure::Failure;

use super::ShardTask;
use crate::actor::Mail;

/// Rows of one page of a scan, and pages of one tick.
const SCAN_PAGE: usize = 256;
const SCAN_PAGES_MAX: usize = 16;

impl ShardTask {
    /// Finds sessions that have something to do and are not in memory.
    pub(super) async fn scan(&mut self, older_than_ms: u64) {
        if let Err(failure) = self.scan_pending(older_than_ms).await {
            tracing::debug!(%failure, "cannot scan the ledger");
            return;
        }
        if let Err(failure) = self.scan_due().await {
            tracing::debug!(%failure, "cannot scan the timers");
        }
    }

    async fn scan_pending(&mut self, older_than_ms: u64) -> Result<(), Failure> {
        let context = self.context.clone();
        let ledger = &context.shared.deps.ledger;
        let mut after = None;
        for _ in 0..SCAN_PAGES_MAX {
            let page = ledger.sessions_with_pending(context.lease.shard, older_than_ms, after, SCAN_PAGE).await?;
            let is_last = page.len() < SCAN_PAGE;
            after = page.last().map(|key| (key.namespace.clone(), key.session_id.clone()));
            for key in page {
                self.send(key, Mail::Nudge);
            }
            if is_last {
                break;
            }
        }
        Ok(())
    }

    async fn scan_due(&mut self) -> Result<(), Failure> {
        let context = self.context.clone();
        let sessions = &context.shared.deps.sessions;
        let horizon = context.now_ms() + 2 * context.shared.config.poll_ms as i64;
        let mut after = None;
        // The scan sees everything up to its horizon, so it replaces what was known.
        self.schedule.clear();
        for _ in 0..SCAN_PAGES_MAX {
            let page = sessions.due(context.lease.shard, horizon, after, SCAN_PAGE).await?;
            let is_last = page.len() < SCAN_PAGE;
            after = page.last().cloned();
            for (at, key) in page {
                if !self.actors.contains_key(&key) {
                    self.schedule.add(at, key);
                }
            }
            if is_last {
                break;
            }
        }
        self.wake_due();
        Ok(())
    }
}
