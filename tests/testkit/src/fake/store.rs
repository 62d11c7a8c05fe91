//! The SQL database as a value: ledger, registry, journal, leases and tokens under one lock, with
//! a clock of its own. One store serves a whole fleet and survives every worker of it.

mod accept;
mod commits;
mod inspect;
mod journal;
mod leases;
mod ledger;
mod sessions;
mod state;
mod tokens;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::ports::Clock;

pub use state::{ActionRec, Claimed, Committed};

use crate::fake::breakage::Breakages;
use state::State;

/// Cheap to clone; clones are the same database.
#[derive(Clone)]
pub struct MemStore {
    state: Arc<Mutex<State>>,
    clock: Arc<dyn Clock>,
    breakages: Breakages,
}

impl MemStore {
    pub fn new(shards: u16, clock: Arc<dyn Clock>) -> Self {
        Self::with_breakages(shards, clock, Breakages::default())
    }

    pub fn with_breakages(shards: u16, clock: Arc<dyn Clock>, breakages: Breakages) -> Self {
        Self { state: Arc::new(Mutex::new(State::new(shards))), clock, breakages }
    }

    /// The lock is the transaction: it is never held across an await.
    fn transaction(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }
}
