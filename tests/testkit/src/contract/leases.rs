//! Contract of `Leases`.

use domain::ports::{Heard, Lease, WorkerInfo};
use schemas::id::{Epoch, Shard};

use super::Ports;
use super::build::*;

const LONG_MS: u64 = 3_600_000;

pub async fn suite(make: &impl AsyncFn() -> Ports) {
    a_shard_has_one_holder(&make().await).await;
    a_lease_ends(&make().await).await;
    renewal_keeps_what_is_held(&make().await).await;
    release_leaves_later_epochs_alone(&make().await).await;
    a_claim_race_has_one_winner(&make().await).await;
    a_role_has_one_holder(&make().await).await;
    a_role_race_has_one_winner(&make().await).await;
    roles_are_told(&make().await).await;
    workers_come_and_go(&make().await).await;
}

async fn a_shard_has_one_holder(ports: &Ports) {
    let (one, two) = (worker("w1"), worker("w2"));
    assert_eq!(ports.leases.shard_count().await.unwrap(), super::SHARDS);
    let claim = async |worker| ports.leases.claim(Shard(1), worker, LONG_MS).await.expect("a claim");
    let lease = claim(&one).await.expect("the shard is free");
    assert_eq!(lease, Lease { shard: Shard(1), epoch: Epoch(1) });
    assert_eq!(claim(&two).await, None);
    assert_eq!(claim(&one).await, None, "held is held, by whomever");
    let shards = ports.leases.shards().await.unwrap();
    assert_eq!(shards.iter().map(|info| info.shard.0).collect::<Vec<_>>(), (0..super::SHARDS).collect::<Vec<_>>());
    assert_eq!((shards[1].owner.as_ref(), shards[1].epoch), (Some(&one), Epoch(1)));
    assert!((1..=LONG_MS as i64).contains(&shards[1].lease_ms_left), "{:?}", shards[1]);
    assert!(shards[0].owner.is_none() && shards[0].lease_ms_left <= 0);
    ports.leases.release(&one, &lease).await.unwrap();
    let after = &ports.leases.shards().await.unwrap()[1];
    assert_eq!((after.owner.as_ref(), after.epoch), (None, Epoch(1)), "the epoch outlives the lease");
    assert_eq!(claim(&two).await, Some(Lease { shard: Shard(1), epoch: Epoch(2) }));
    ports.leases.release_all().await.unwrap();
    assert!(ports.leases.shards().await.unwrap().iter().all(|info| info.owner.is_none()));
    assert_eq!(claim(&one).await.map(|lease| lease.epoch), Some(Epoch(3)), "no epoch is used twice");
}

async fn a_lease_ends(ports: &Ports) {
    let (one, two) = (worker("w1"), worker("w2"));
    // A lease of no time has ended at once.
    let first = ports.leases.claim(Shard(0), &one, 0).await.unwrap().expect("free");
    let second = ports.leases.claim(Shard(0), &two, LONG_MS).await.unwrap().expect("the lease has ended");
    assert!(second.epoch > first.epoch);
    assert!(ports.leases.renew(&one, std::slice::from_ref(&first), LONG_MS).await.unwrap().is_empty());
    let info = &ports.leases.shards().await.unwrap()[0];
    assert_eq!((info.owner.as_ref(), info.epoch), (Some(&two), second.epoch));
}

async fn renewal_keeps_what_is_held(ports: &Ports) {
    let (one, two) = (worker("w1"), worker("w2"));
    let mine = ports.leases.claim(Shard(0), &one, 60_000).await.unwrap().expect("free");
    let also = ports.leases.claim(Shard(2), &one, 60_000).await.unwrap().expect("free");
    let theirs = ports.leases.claim(Shard(1), &two, 60_000).await.unwrap().expect("free");
    let stale = Lease { epoch: Epoch(also.epoch.0 - 1), ..also.clone() };
    let asked = [mine.clone(), theirs, stale, Lease { shard: Shard(3), epoch: Epoch(1) }];
    assert_eq!(ports.leases.renew(&one, &asked, LONG_MS).await.unwrap(), [mine]);
    let shards = ports.leases.shards().await.unwrap();
    assert!(shards[0].lease_ms_left > 60_000, "extended");
    assert!(shards[1].lease_ms_left <= 60_000 && shards[2].lease_ms_left <= 60_000, "left alone");
    assert!(ports.leases.renew(&one, &[], LONG_MS).await.unwrap().is_empty());
}

async fn release_leaves_later_epochs_alone(ports: &Ports) {
    let one = worker("w1");
    let first = ports.leases.claim(Shard(0), &one, 0).await.unwrap().expect("free");
    let second = ports.leases.claim(Shard(0), &one, LONG_MS).await.unwrap().expect("ended");
    ports.leases.release(&one, &first).await.unwrap();
    ports.leases.release(&worker("w2"), &second).await.unwrap();
    assert_eq!(ports.leases.shards().await.unwrap()[0].owner.as_ref(), Some(&one));
}

async fn a_claim_race_has_one_winner(ports: &Ports) {
    let mut claims = tokio::task::JoinSet::new();
    for n in 0..16 {
        let leases = ports.leases.clone();
        claims.spawn(async move { leases.claim(Shard(0), &worker(&format!("w{n}")), LONG_MS).await.expect("a claim") });
    }
    let won: Vec<Lease> = claims.join_all().await.into_iter().flatten().collect();
    assert_eq!(won, [Lease { shard: Shard(0), epoch: Epoch(1) }]);
}

async fn a_role_has_one_holder(ports: &Ports) {
    let (one, two) = (worker("w1"), worker("w2"));
    let hold = async |role, worker, lease_ms| ports.leases.hold_role(role, worker, lease_ms).await.expect("an answer");
    assert_eq!(hold("archivist", &one, LONG_MS).await, Some(Epoch(1)));
    assert_eq!(hold("archivist", &two, LONG_MS).await, None);
    assert_eq!(hold("archivist", &one, LONG_MS).await, Some(Epoch(1)), "extended under the same epoch");
    assert_eq!(hold("auditor", &two, LONG_MS).await, Some(Epoch(1)), "another role is another's");
    ports.leases.release_role("archivist", &two).await.expect("nothing to release");
    assert_eq!(hold("archivist", &two, LONG_MS).await, None, "only its holder gives it back");
    ports.leases.release_role("archivist", &one).await.expect("released");
    assert_eq!(hold("archivist", &one, 0).await, Some(Epoch(2)), "a lease of no time has ended at once");
    assert_eq!(hold("archivist", &one, 0).await, Some(Epoch(2)), "nobody took it");
    assert_eq!(hold("archivist", &two, LONG_MS).await, Some(Epoch(3)));
    assert_eq!(hold("archivist", &one, LONG_MS).await, None);
    ports.leases.release_all().await.expect("released");
    assert_eq!(hold("archivist", &one, LONG_MS).await, Some(Epoch(4)), "no epoch is used twice");
}

async fn roles_are_told(ports: &Ports) {
    let (one, two) = (worker("w1"), worker("w2"));
    let roles = async || ports.leases.roles().await.expect("an answer");
    assert!(roles().await.is_empty(), "nobody has held any");
    ports.leases.hold_role("auditor", &two, 0).await.expect("an answer");
    ports.leases.hold_role("archivist", &one, LONG_MS).await.expect("an answer");
    let told = roles().await;
    let names: Vec<_> = told.iter().map(|info| (info.role.as_str(), info.owner.as_ref(), info.epoch)).collect();
    assert_eq!(names, [("archivist", Some(&one), Epoch(1)), ("auditor", Some(&two), Epoch(1))]);
    assert!((1..=LONG_MS as i64).contains(&told[0].lease_ms_left), "{told:?}");
    assert!(told[1].lease_ms_left <= 0, "a lease of no time has ended: {told:?}");
    ports.leases.release_role("archivist", &one).await.expect("released");
    let after = roles().await;
    assert_eq!((after[0].owner.as_ref(), after[0].epoch), (None, Epoch(1)), "the epoch outlives the lease");
}

async fn a_role_race_has_one_winner(ports: &Ports) {
    let mut claims = tokio::task::JoinSet::new();
    for n in 0..16 {
        let leases = ports.leases.clone();
        claims
            .spawn(async move { leases.hold_role("role", &worker(&format!("w{n}")), LONG_MS).await.expect("a claim") });
    }
    let won: Vec<Epoch> = claims.join_all().await.into_iter().flatten().collect();
    assert_eq!(won, [Epoch(1)]);
}

async fn workers_come_and_go(ports: &Ports) {
    let info = |name: &str| WorkerInfo {
        worker: worker(name),
        host: "host \"a\"".to_owned(),
        version: "1.2.3".to_owned(),
        roles: vec!["runner".to_owned(), "archivist".to_owned()],
        draining: false,
        heartbeat_age_ms: 0,
    };
    assert_eq!(ports.leases.heartbeat(&info("w1")).await.unwrap(), Heard::default());
    assert_eq!(ports.leases.heartbeat(&info("w2")).await.unwrap(), Heard::default());
    let workers = async |max_age_ms| ports.leases.workers(max_age_ms).await.expect("workers");
    let live = workers(3_600_000).await;
    assert_eq!(live.iter().map(|info| info.worker.as_str()).collect::<Vec<_>>(), ["w1", "w2"]);
    assert_eq!((&live[0].host, &live[0].roles), (&info("w1").host, &info("w1").roles));
    assert!((0..3_600_000).contains(&live[0].heartbeat_age_ms));
    assert!(workers(-1).await.is_empty(), "none is that young");
    assert!(ports.leases.set_draining(&worker("w1")).await.unwrap());
    assert!(!ports.leases.set_draining(&worker("w9")).await.unwrap(), "there is no such worker");
    assert!(ports.leases.heartbeat(&info("w1")).await.unwrap().draining, "told to drain, and stays so");
    assert!(!ports.leases.heartbeat(&info("w2")).await.unwrap().draining);
    assert_eq!(workers(3_600_000).await.iter().map(|info| info.draining).collect::<Vec<_>>(), [true, false]);
    ports.leases.deregister(&worker("w1")).await.unwrap();
    assert_eq!(workers(3_600_000).await.len(), 1);
    assert!(!ports.leases.heartbeat(&info("w1")).await.unwrap().draining, "a new registration starts afresh");
}
