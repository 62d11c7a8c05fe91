//! Claims operations for as long as there is room for them, and owns their attempts.

use std::sync::Arc;
use std::time::Duration;

use domain::ports::{Hold, OperationRow};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{Shared, run};

/// Operations of one claim.
const CLAIM_MAX: usize = 32;

pub async fn serve(shared: Arc<Shared>, stop: CancellationToken) {
    let mut claims = Claims { running: JoinSet::new(), failures: 0, shared };
    while !stop.is_cancelled() {
        // Never cut off: what was claimed and not heard of would be held until its claim ends.
        let more = claims.claim().await;
        if more && claims.free() > 0 {
            continue;
        }
        if stop.run_until_cancelled(claims.wait()).await.is_none() {
            break;
        }
    }
    while let Some(ended) = claims.running.join_next().await {
        note(ended);
    }
}

struct Claims {
    shared: Arc<Shared>,
    running: JoinSet<()>,
    /// Claims that failed since the last one that did not.
    failures: u32,
}

impl Claims {
    fn free(&self) -> usize {
        self.shared.config.running_max.saturating_sub(self.running.len())
    }

    /// Starts what is due. Answers whether more may be.
    async fn claim(&mut self) -> bool {
        let limit = self.free().min(CLAIM_MAX);
        if limit == 0 {
            return false;
        }
        let config = &self.shared.config;
        let (operations, hold) = (&self.shared.deps.operations, Hold::Extended(config.claim_ms));
        let claimed = operations.claim(&config.pool, config.worker.as_str(), hold, limit).await;
        match claimed {
            Ok(rows) => {
                self.failures = 0;
                host::stall::clear();
                let more = rows.len() == limit;
                rows.into_iter().for_each(|row| self.start(row));
                more
            }
            Err(failure) => {
                host::stall::note("claims of operations", &failure);
                self.failures = self.failures.saturating_add(1);
                false
            }
        }
    }

    fn start(&mut self, row: OperationRow) {
        self.running.spawn(run::run(Arc::clone(&self.shared), row));
    }

    /// Until there may be something to claim.
    async fn wait(&mut self) {
        let config = &self.shared.config;
        let wait = config.poll_ms.saturating_mul(1 << self.failures.min(10)).min(config.backoff_max_ms);
        let until = tokio::time::Instant::now() + Duration::from_millis(wait);
        loop {
            let was_full = self.free() == 0;
            tokio::select! {
                Some(ended) = self.running.join_next(), if !self.running.is_empty() => {
                    note(ended);
                    if was_full {
                        return;
                    }
                }
                () = self.shared.nudge.told(), if !was_full && self.failures == 0 => return,
                () = tokio::time::sleep_until(until), if !was_full => return,
            }
        }
    }
}

fn note(ended: Result<(), tokio::task::JoinError>) {
    if ended.is_err_and(|error| error.is_panic()) {
        tracing::error!("running an operation panicked; it is settled by whoever claims it next");
    }
}
