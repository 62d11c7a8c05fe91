//! A session whose create comes straight from its acceptance is not read before it begins.

use domain::ports::Queue;
use schemas::action::Action;
use testkit::fake::FaultyQueue;
use testkit::unreliable::{Faults, Port, Unreliable};
use tokio::time::sleep;

use super::*;
use crate::runner::RunnerDeps;

const MS: fn(u64) -> Duration = Duration::from_millis;

/// Accepts a session that takes a step an hour; gives what is published of that.
async fn created(store: &MemStore) -> Action {
    let payload = json!({"moniker": "count", "loop_interval_ms": 3_600_000});
    match verdict(store, "count", payload).await {
        Verdict::Accepted(accepted) => accepted.action,
        other => panic!("{other:?}"),
    }
}

fn iterations(store: &MemStore) -> Vec<u64> {
    let steps = store.commit_log().into_iter().flat_map(|one| one.entry.steps.clone());
    steps.map(|step| step.iteration).collect()
}

/// A runner whose reads of sessions fail while `faults` say so.
fn runner(store: &MemStore, queue: &FaultyQueue, faults: &Faults) -> Runner {
    let clock = SimClock::new();
    let library = Arc::new(Library { store: store.clone(), text: String::new(), counted: Mutex::default() });
    let sessions = Arc::new(Unreliable::new(Arc::new(store.clone()), faults.clone()));
    let deps = RunnerDeps { sessions, queue: Arc::new(queue.clone()), ..deps(store, library, &clock) };
    Runner::start(deps, RunnerConfig { idle_evict_ms: 20, ..config("w1") })
}

#[tokio::test(start_paused = true)]
async fn it_begins_without_a_read_and_a_late_copy_of_its_create_changes_nothing() {
    let store = MemStore::new(1, Arc::new(SimClock::new()));
    let (queue, faults) = (FaultyQueue::reliable(), Faults::none("w1"));
    let runner = runner(&store, &queue, &faults);
    sleep(MS(1_500)).await;
    faults.outage(&[Port::Sessions], MS(100));
    let action = created(&store).await;
    queue.publish(std::slice::from_ref(&action)).await.expect("published");
    sleep(MS(50)).await;
    assert_eq!(iterations(&store), [0], "it waits for a read");
    sleep(MS(100)).await;
    // It has left memory by now, and this is as fresh as it was.
    queue.publish(&[action]).await.expect("published");
    sleep(MS(2_000)).await;
    assert_eq!(iterations(&store), [0]);
    let row = store.session(&key("count")).await.expect("a read").expect("a session");
    assert_eq!((row.head.steps, row.head.status), (1, SessionStatus::Running));
    runner.drain().await;
}
