//! What outlives the workers: the database, the archive, the broker, the outside world.

use std::sync::Arc;

use domain::effect::{EffectCall, EffectClass};
use testkit::dice::Dice;
use testkit::fake::{FaultyQueue, LocalLive, MemArchive, MemStore, ScriptedEffects, SimClock};
use testkit::unreliable::Trace;

use crate::plan::Plan;

#[derive(Clone)]
pub struct World {
    pub plan: Arc<Plan>,
    pub dice: Dice,
    pub clock: SimClock,
    pub store: MemStore,
    pub archive: MemArchive,
    pub queue: FaultyQueue,
    pub effects: ScriptedEffects,
    pub live: LocalLive,
    pub trace: Trace,
}

impl World {
    /// Must be called inside the runtime whose time it follows.
    pub fn new(plan: Plan) -> Self {
        let dice = Dice::new(plan.seed);
        let clock = SimClock::new();
        let breakages = plan.breakages.clone();
        let store = MemStore::with_breakages(plan.shards, Arc::new(clock.sibling()), breakages.clone());
        let witness = store.clone();
        let effects = ScriptedEffects::seeded(dice.fork(), plan.effects.clone(), clock.clone())
            .with_witness(Arc::new(move |call| object_to(&witness, call)));
        let witness = store.clone();
        let live = LocalLive::default().with_witness(Arc::new(move |notice| {
            let too_early = notice.entry.as_ref().is_some_and(|entry| !witness.is_committed(entry));
            too_early.then(|| format!("a notice of {} left before its commit", notice.key))
        }));
        Self {
            archive: MemArchive::with_faults(dice.fork(), plan.cut_appends, breakages),
            queue: FaultyQueue::new(dice.fork(), plan.queue.clone()),
            trace: Trace::new(),
            plan: Arc::new(plan),
            dice,
            clock,
            store,
            effects,
            live,
        }
    }

    /// Ends the faults of everything that is not a process.
    pub fn heal(&self) {
        self.queue.heal();
        self.clock.settle();
    }
}

/// Why a call must not reach the world now (invariants E1 and E2).
fn object_to(store: &MemStore, call: &EffectCall) -> Option<String> {
    let (key, iteration) = (&call.key, iteration_of(&call.key)?);
    let steps = store.steps_of(&call.session)?;
    if steps > iteration {
        return Some(format!("E2: {key} is performed although its step is committed"));
    }
    if steps < iteration {
        return Some(format!("E1: {key} is performed although only {steps} steps are committed"));
    }
    if call.effect.class() == EffectClass::AtMostOnce && !store.effect_is_open(key) {
        return Some(format!("E1: {key} is performed and not noted as sent"));
    }
    None
}

/// The iteration in a key of `domain::effect::effect_key`.
fn iteration_of(effect_key: &str) -> Option<u64> {
    effect_key.rsplit(':').nth(1)?.parse().ok()
}
