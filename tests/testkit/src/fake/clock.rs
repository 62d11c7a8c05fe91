//! A wall clock that follows the runtime's (paused) time, plus jumps.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use domain::ports::Clock;
use tokio::time::Instant;

/// Start of every simulated history: 2030-01-01T00:00:00Z.
pub const EPOCH_MS: i64 = 1_893_456_000_000;

#[derive(Clone)]
pub struct SimClock {
    start: Instant,
    jump_ms: Arc<AtomicI64>,
}

impl SimClock {
    /// Starts now; must be called inside the runtime whose time it follows.
    pub fn new() -> Self {
        Self { start: Instant::now(), jump_ms: Arc::default() }
    }

    /// Another clock on the same time line, without the jumps of this one.
    pub fn sibling(&self) -> Self {
        Self { start: self.start, jump_ms: Arc::default() }
    }

    /// Moves the wall clock to and fro; the runtime's time is untouched.
    pub fn jump(&self, by_ms: i64) {
        self.jump_ms.fetch_add(by_ms, Ordering::Relaxed);
    }

    /// Takes all jumps back, as a time service does in the end.
    pub fn settle(&self) {
        self.jump_ms.store(0, Ordering::Relaxed);
    }

    /// Runtime milliseconds since the start.
    pub fn elapsed_ms(&self) -> u64 {
        self.start.elapsed().as_millis() as u64
    }
}

impl Default for SimClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SimClock {
    fn now_ms(&self) -> i64 {
        EPOCH_MS + self.elapsed_ms() as i64 + self.jump_ms.load(Ordering::Relaxed)
    }
}
