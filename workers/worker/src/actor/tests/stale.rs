//! A worker that could not renew its leases for a while may have a successor that it does not know of.

use schemas::limits::LEASE_MS;
use testkit::unreliable::{Faults, Port, Unreliable};
use tokio::time::sleep;

use super::*;
use crate::runner::RunnerDeps;

const MS: fn(u64) -> Duration = Duration::from_millis;

async fn until_steps(store: &MemStore, steps: u64) {
    while store.steps_of(&key("count")).unwrap_or(0) < steps {
        sleep(MS(10)).await;
    }
}

/// Its steps make no calls, and the store would take them: nothing but the age of the leases holds them up.
#[tokio::test(start_paused = true)]
async fn no_step_runs_until_the_leases_are_renewed_again() {
    let clock = SimClock::new();
    let store = MemStore::new(1, Arc::new(clock.clone()));
    accept(&store, "count", json!({"moniker": "count", "loop_interval_ms": 100})).await;
    let faults = Faults::none("w1");
    let leases = Arc::new(Unreliable::new(Arc::new(store.clone()), faults.clone()));
    let library = Arc::new(Library { store: store.clone(), text: String::new(), counted: Mutex::default() });
    let runner = Runner::start(RunnerDeps { leases, ..deps(&store, library, &clock) }, config("w1"));
    until_steps(&store, 5).await;
    faults.outage(&[Port::Leases], MS(60_000));
    sleep(MS(LEASE_MS)).await;
    let stale = store.steps_of(&key("count")).expect("it has begun");
    sleep(MS(50_000)).await;
    assert_eq!(store.steps_of(&key("count")), Some(stale), "it goes on with leases that may be another's by now");
    until_steps(&store, stale + 5).await;
    runner.drain().await;
    let steps = store.commit_log().into_iter().flat_map(|one| one.entry.steps.clone());
    let iterations: Vec<u64> = steps.map(|step| step.iteration).collect();
    assert_eq!(iterations, (0..iterations.len() as u64).collect::<Vec<_>>());
}
