//! How fresh the leases are, by this process's monotonic clock: a worker that could not renew for
//! half a lease starts no effect (DESIGN 4), whatever the wall clock says.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

pub(crate) struct LeaseClock {
    base: Instant,
    /// Milliseconds from `base` to the last renewal, plus one; 0 = never renewed.
    renewed_ms: AtomicU64,
    stop_ms: u64,
}

impl LeaseClock {
    pub fn new(lease_ms: u64) -> Self {
        Self { base: Instant::now(), renewed_ms: AtomicU64::new(0), stop_ms: lease_ms / 2 }
    }

    pub fn renewed(&self, at: Instant) {
        let ms = u64::try_from(at.duration_since(self.base).as_millis()).unwrap_or(u64::MAX - 1);
        self.renewed_ms.fetch_max(ms + 1, Ordering::Relaxed);
    }

    /// Whether effects may start now.
    pub fn is_fresh(&self) -> bool {
        let renewed = self.renewed_ms.load(Ordering::Relaxed);
        let now = u64::try_from(self.base.elapsed().as_millis()).unwrap_or(u64::MAX);
        renewed > 0 && now < renewed - 1 + self.stop_ms
    }

    /// Waits until effects may start. The caller's task ends when the shard is lost meanwhile.
    pub async fn fresh(&self) {
        while !self.is_fresh() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}
