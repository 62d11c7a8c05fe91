//! The fakes that tests give a runner. What one wants otherwise it puts in their place.

use std::sync::Arc;

use domain::ports::Effects;
use testkit::dice::Dice;
use testkit::fake::effects::EffectFaults;
use testkit::fake::{FaultyQueue, LocalLive, MemArchive, MemStore, ScriptedEffects, SimClock};

use crate::runner::RunnerDeps;

/// Everything is on this store, and nothing fails.
pub(crate) fn deps(store: &MemStore, effects: Arc<dyn Effects>, clock: &SimClock) -> RunnerDeps {
    let all = Arc::new(store.clone());
    RunnerDeps {
        ledger: all.clone(),
        sessions: all.clone(),
        operations: all.clone(),
        conversations: all.clone(),
        commits: all.clone(),
        journal: all.clone(),
        archive: Arc::new(MemArchive::default()),
        leases: all,
        queue: Arc::new(FaultyQueue::reliable()),
        effects,
        live: Arc::new(LocalLive::default()),
        clock: Arc::new(clock.clone()),
    }
}

/// Effects for whoever does not look at them: they answer by their keys alone.
pub(crate) fn effects(clock: &SimClock) -> Arc<dyn Effects> {
    Arc::new(ScriptedEffects::seeded(Dice::new(1), EffectFaults::NONE, clock.clone()))
}
