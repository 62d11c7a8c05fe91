//! A worker without shards among others, on paused time.

use testkit::contract::build::worker;
use testkit::fake::{MemStore, SimClock};
use testkit::unreliable::{Faults, Port, Unreliable};
use tokio::time::{Instant, sleep};

use super::*;

const MS: fn(u64) -> Duration = Duration::from_millis;
/// As long as the others count on whoever has said nothing.
const AGE_MS: i64 = 3 * LEASE_MS as i64;

fn store() -> MemStore {
    MemStore::new(1, Arc::new(SimClock::new()))
}

fn config() -> PresenceConfig {
    PresenceConfig::new(worker("e1"), "here", "0", vec!["executor".to_owned()])
}

/// Who is known, and whether it leaves.
async fn known(store: &MemStore) -> Vec<(String, bool)> {
    let workers = store.workers(AGE_MS).await.expect("an answer");
    workers.into_iter().map(|info| (info.worker.to_string(), info.draining)).collect()
}

#[tokio::test(start_paused = true)]
async fn it_is_known_for_as_long_as_it_is_there() {
    let store = store();
    let presence = Presence::start(Arc::new(store.clone()), config());
    sleep(MS(60_000)).await;
    let workers = store.workers(AGE_MS).await.expect("an answer");
    let [one] = workers.as_slice() else { panic!("{workers:?}") };
    assert!(one.runs_operations() && one.heartbeat_age_ms <= LEASE_RENEW_MS as i64, "{one:?}");
    assert_eq!((one.host.as_str(), one.version.as_str(), one.roles.len()), ("here", "0", 1));
    presence.leave();
    sleep(MS(1)).await;
    assert_eq!(known(&store).await, [("e1".to_owned(), true)], "who leaves has not left yet");
    assert!(!presence.told().is_cancelled(), "nobody told it to");
    presence.end().await;
    assert!(known(&store).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn it_hears_within_a_beat_that_it_is_to_drain() {
    let store = store();
    let presence = Presence::start(Arc::new(store.clone()), config());
    sleep(MS(10)).await;
    assert!(store.set_draining(&worker("e1")).await.expect("an answer"), "it is known");
    let told = presence.told();
    timeout(MS(LEASE_RENEW_MS + 1), told.cancelled()).await.expect("it hears of it");
    sleep(MS(60_000)).await;
    assert_eq!(known(&store).await, [("e1".to_owned(), true)], "what it runs may take its time");
    presence.end().await;
    assert!(known(&store).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn it_outlasts_a_store_that_is_away_and_a_newer_schema() {
    let (store, faults) = (store(), Faults::none("e1"));
    let leases = Arc::new(Unreliable::new(Arc::new(store.clone()), faults.clone()));
    let presence = Presence::start(leases, config());
    sleep(MS(10)).await;
    faults.outage(&[Port::Leases], MS(60_000));
    sleep(MS(30_000)).await;
    assert!(known(&store).await.is_empty(), "it has said nothing for long");
    store.migrated_to(99);
    sleep(MS(30_000 + 2 * LEASE_RENEW_MS)).await;
    assert_eq!(known(&store).await, [("e1".to_owned(), false)]);
    // One that does not answer at all keeps no process from its end.
    faults.freeze(MS(600_000));
    let begun = Instant::now();
    presence.end().await;
    assert!(begun.elapsed() <= MS(LEASE_MS), "{:?}", begun.elapsed());
}
