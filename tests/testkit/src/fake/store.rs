//! The SQL database as a value: ledger, registry, journal, leases, tokens, definitions,
//! conversations and memories under one lock, with a clock of its own. One store serves a whole fleet
//! and survives every worker of it.

mod accept;
mod commits;
mod conversations;
mod definitions;
mod inspect;
mod journal;
mod leases;
mod ledger;
mod memories;
mod operations;
mod sessions;
mod state;
mod talk;
mod tokens;
mod transcripts;

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

    /// What is not younger than `age_ms` lies before this time.
    fn bound_ms(&self, age_ms: u64) -> i64 {
        match age_ms {
            // All, even what was written before the clock went back.
            0 => i64::MAX,
            _ => self.now_ms().saturating_sub(i64::try_from(age_ms).unwrap_or(i64::MAX)).saturating_add(1),
        }
    }
}
