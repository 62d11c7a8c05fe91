//! A worker that runs no sessions beside one that does: it is known, and nothing is given to it or freed by its end.

use domain::ports::Leases;
use schemas::id::{Epoch, WorkerId};
use schemas::limits::{LEASE_LOOK_MS, LEASE_MS};
use tokio::time::sleep;

use super::*;
use crate::presence::{Presence, PresenceConfig};

const MS: fn(u64) -> Duration = Duration::from_millis;

async fn known(store: &MemStore) -> Vec<String> {
    let workers = store.workers(LEASE_MS as i64).await.expect("an answer");
    workers.into_iter().map(|info| info.worker.to_string()).collect()
}

async fn owners(store: &MemStore) -> Vec<(Option<WorkerId>, Epoch)> {
    let shards = store.shards().await.expect("an answer");
    shards.into_iter().map(|info| (info.owner, info.epoch)).collect()
}

#[tokio::test(start_paused = true)]
async fn it_is_given_no_shard_and_its_death_frees_none() {
    let clock = SimClock::new();
    let store = MemStore::new(4, Arc::new(clock.clone()));
    let library = Arc::new(Library { store: store.clone(), text: String::new(), counted: Mutex::default() });
    let roles = vec!["executor".to_owned(), "archivist".to_owned()];
    // Known before there is a runner: it would have its part of the shards.
    let presence = Presence::start(Arc::new(store.clone()), PresenceConfig::new(worker("e1"), "here", "0", roles));
    sleep(MS(LEASE_LOOK_MS)).await;
    let runner = start("w1", &store, library, &clock);
    sleep(MS(2 * LEASE_MS)).await;
    assert_eq!(known(&store).await, ["e1", "w1"]);
    let owned = owners(&store).await;
    assert!(owned.iter().all(|one| *one == (Some(worker("w1")), Epoch(1))), "{owned:?}");
    // Its process ends, and the database sees that.
    drop(presence);
    store.process_ended(worker("e1"));
    sleep(MS(2 * LEASE_LOOK_MS)).await;
    assert_eq!(known(&store).await, ["w1"]);
    sleep(MS(2 * LEASE_MS)).await;
    assert_eq!(owners(&store).await, owned);
    runner.drain().await;
}
