//! Who serves the fleet: workers and their versions, shards and roles that nobody holds, operations that
//! nobody takes, clocks that differ.

use std::collections::BTreeSet;
use std::time::Duration;

use domain::failure::Failure;
use domain::ports::{RoleInfo, ShardInfo, WorkerInfo};
use domain::tool::POOL;
use schemas::limits::{LEASE_MS, ROLE_LEASE_MS, ROLE_RENEW_MS};
use tokio::time::Instant;

use super::report::{Check, Report};
use crate::fleet::Store;

/// More than this confuses whoever reads two logs side by side; nothing else depends on it.
const OFFSET_MS_MAX: i64 = 1_000;
const WORKER_AGE_MS: i64 = 3 * LEASE_MS as i64;
/// When a fleet starts, or after the death of a process, there are shards and roles that nobody holds. Within
/// this time they are somebody's: a role is free when its lease has ended, and is tried for that often.
const SETTLE: Duration = Duration::from_millis(ROLE_LEASE_MS + ROLE_RENEW_MS);
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// Executors look several times a second, and every five seconds at least if the database was away.
const WAITING_MS_MAX: u64 = 30_000;
/// Roles that a fleet needs at all times, and what it is without them.
const ROLES: [(&str, &str); 2] = [
    ("archivist", "history stays in the journal; start a worker with the role archivist"),
    ("auditor", "nobody looks for sessions that are stuck; start a worker with the role runner"),
];

/// `is_shared`: whether it is a fleet of several processes.
pub async fn look(store: &Store, is_shared: bool, report: &mut Report) {
    if is_shared {
        report.note("clock", store.clock_offset_ms().await.map(clock));
    }
    match settled(store, is_shared).await {
        Ok(view) => view.checks().into_iter().for_each(|check| report.push(check)),
        Err(failure) => report.add("workers", false, failure.to_string()),
    }
}

/// How the fleet stands, once it does.
async fn settled(store: &Store, is_shared: bool) -> Result<View, Failure> {
    let began = Instant::now();
    loop {
        let view = View::read(store).await?;
        // Who holds a data directory may be about to start its workers; of a fleet without any, nothing comes.
        let is_vain = is_shared && view.workers.is_empty();
        if is_vain || view.is_settled() || began.elapsed() >= SETTLE {
            return Ok(view);
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// The fleet as its rows tell it.
struct View {
    workers: Vec<WorkerInfo>,
    shards: Vec<ShardInfo>,
    roles: Vec<RoleInfo>,
    /// For how long an operation of our own pool could have been taken.
    waiting_ms: Option<u64>,
}

impl View {
    async fn read(store: &Store) -> Result<Self, Failure> {
        Ok(Self {
            workers: store.leases.workers(WORKER_AGE_MS).await?,
            shards: store.leases.shards().await?,
            roles: store.leases.roles().await?,
            waiting_ms: store.operations.waiting_ms(POOL).await?,
        })
    }

    fn is_settled(&self) -> bool {
        !self.workers.is_empty() && leases(&self.shards).well && roles(&self.roles).well
    }

    fn checks(&self) -> [Check; 4] {
        [
            workers(&self.workers, env!("CARGO_PKG_VERSION")),
            leases(&self.shards),
            roles(&self.roles),
            executors(&self.workers, self.waiting_ms),
        ]
    }
}

fn clock(offset_ms: i64) -> Check {
    let detail = format!("the database's clock is {offset_ms} ms ahead of this machine's; leases use the database's");
    Check::new("clock", offset_ms.abs() <= OFFSET_MS_MAX, detail)
}

fn workers(workers: &[WorkerInfo], own: &str) -> Check {
    if workers.is_empty() {
        let detail = "none gives a sign of life; start one with `stepfleet worker`, or all in one with `stepfleet up`";
        return Check::new("workers", false, detail);
    }
    let draining = workers.iter().filter(|worker| worker.draining).count();
    let versions: BTreeSet<&str> = workers.iter().map(|worker| worker.version.as_str()).collect();
    let versions: Vec<&str> = versions.into_iter().collect();
    let detail = format!("{} alive, {draining} of them draining, version {}", workers.len(), versions.join(" and "));
    if versions == [own] {
        return Check::new("workers", true, detail);
    }
    Check::warning("workers", format!("{detail}; this program is {own}. In order while a new version is rolled out"))
}

fn leases(shards: &[ShardInfo]) -> Check {
    let is_orphan = |shard: &&ShardInfo| shard.owner.is_none() || shard.lease_ms_left <= 0;
    let orphans: Vec<String> = shards.iter().filter(is_orphan).map(|shard| shard.shard.to_string()).collect();
    match orphans.as_slice() {
        [] => Check::new("leases", true, format!("all {} have a live owner", shards.len())),
        some => {
            let detail = format!("without a live owner: {}; start a worker", some.join(", "));
            Check::new("leases", false, detail)
        }
    }
}

fn roles(held: &[RoleInfo]) -> Check {
    let holder = |role: &str| {
        let info = held.iter().find(|info| info.role == role && info.lease_ms_left > 0)?;
        info.owner.as_ref()
    };
    let (mut told, mut lacking) = (Vec::new(), Vec::new());
    for (role, without) in ROLES {
        match holder(role) {
            Some(worker) => told.push(format!("{worker} is {role}")),
            None => lacking.push(format!("nobody is {role}: {without}")),
        }
    }
    match lacking.as_slice() {
        [] => Check::new("roles", true, told.join(", ")),
        some => Check::new("roles", false, some.join(". ")),
    }
}

/// A fleet without tools needs none, so what counts is whether operations are taken.
fn executors(workers: &[WorkerInfo], waiting_ms: Option<u64>) -> Check {
    let count = workers.iter().filter(|worker| worker.runs_operations()).count();
    let Some(waiting_ms) = waiting_ms else {
        return Check::new("executors", true, format!("no operation waits; workers known to run them: {count}"));
    };
    let detail = format!("an operation waits for {waiting_ms} ms; workers known to run them: {count}");
    match (waiting_ms <= WAITING_MS_MAX, count) {
        (true, _) => Check::new("executors", true, detail),
        (false, 0) => {
            let remedy = "start a worker with the role executor";
            Check::new("executors", false, format!("{detail}; {remedy}"))
        }
        (false, _) => {
            let remedy = "all are busy; start more, or look for calls that hang";
            Check::warning("executors", format!("{detail}; {remedy}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use schemas::id::{Epoch, Shard, WorkerId};

    use super::*;

    fn id(name: &str) -> WorkerId {
        WorkerId::parse(name).unwrap()
    }

    fn worker(name: &str, version: &str, roles: &[&str]) -> WorkerInfo {
        WorkerInfo {
            worker: id(name),
            host: "host".into(),
            version: version.into(),
            roles: roles.iter().map(|role| (*role).to_owned()).collect(),
            draining: false,
            heartbeat_age_ms: 0,
        }
    }

    fn shard(number: u16, owner: Option<&str>, lease_ms_left: i64) -> ShardInfo {
        let owner = owner.map(id);
        ShardInfo { shard: Shard(number), owner, epoch: Epoch(1), lease_ms_left, seq: 0, archived_seq: 0 }
    }

    fn role(role: &str, owner: Option<&str>, lease_ms_left: i64) -> RoleInfo {
        RoleInfo { role: role.into(), owner: owner.map(id), epoch: Epoch(1), lease_ms_left }
    }

    fn verdict(check: &Check) -> (bool, bool) {
        (check.well, check.warning)
    }

    #[test]
    fn workers_of_other_versions_are_a_warning_and_none_at_all_is_unwell() {
        let (old, new) = (worker("w1", "0.1.0", &["runner"]), worker("w2", "0.2.0", &["runner"]));
        assert_eq!(verdict(&workers(std::slice::from_ref(&old), "0.1.0")), (true, false));
        assert_eq!(verdict(&workers(std::slice::from_ref(&new), "0.1.0")), (true, true));
        let both = workers(&[old, new], "0.2.0");
        assert_eq!(verdict(&both), (true, true));
        for part in ["2 alive", "0.1.0 and 0.2.0", "this program is 0.2.0"] {
            assert!(both.detail.contains(part), "{part}: {both:?}");
        }
        assert_eq!(verdict(&workers(&[], "0.1.0")), (false, false));
    }

    #[test]
    fn shards_without_a_live_owner_are_named() {
        assert!(leases(&[shard(0, Some("w1"), 5_000)]).well);
        let found = leases(&[shard(0, Some("w1"), 5_000), shard(1, None, 0), shard(2, Some("w1"), -1)]);
        assert!(!found.well && found.detail.contains("1, 2"), "{found:?}");
    }

    #[test]
    fn roles_that_nobody_holds_are_named() {
        let both = [role("archivist", Some("w1"), 9_000), role("auditor", Some("w2"), 9_000)];
        let well = roles(&both);
        assert!(
            well.well && well.detail.contains("w1 is archivist") && well.detail.contains("w2 is auditor"),
            "{well:?}"
        );
        let sweeper = role("sweeper", None, -1);
        assert!(roles(&[both[0].clone(), both[1].clone(), sweeper]).well, "it is held only when there is work");
        let ended = roles(&[role("archivist", Some("w1"), 0), both[1].clone()]);
        assert!(!ended.well && ended.detail.contains("nobody is archivist"), "{ended:?}");
        let never = roles(&[]);
        assert!(!never.well && never.detail.contains("archivist") && never.detail.contains("auditor"), "{never:?}");
        assert!(!roles(&[both[0].clone(), role("auditor", None, 9_000)]).well, "it was given back");
    }

    #[test]
    fn operations_that_nobody_takes_are_unwell() {
        let busy = [worker("w1", "0.1.0", &["runner", "executor"])];
        let draining = [WorkerInfo { draining: true, ..busy[0].clone() }];
        let runner = [worker("w1", "0.1.0", &["runner"])];
        assert_eq!(verdict(&executors(&runner, None)), (true, false), "there is nothing to do");
        assert_eq!(verdict(&executors(&runner, Some(WAITING_MS_MAX))), (true, false), "somebody may be about to");
        for nobody in [&runner, &draining] {
            let check = executors(nobody, Some(WAITING_MS_MAX + 1));
            assert!(!check.well && check.detail.contains("role executor"), "{check:?}");
        }
        assert_eq!(verdict(&executors(&busy, Some(WAITING_MS_MAX + 1))), (true, true));
    }

    #[test]
    fn a_fleet_is_settled_when_everything_is_somebodys() {
        let view = || View {
            workers: vec![worker("w1", "0.1.0", &["runner"])],
            shards: vec![shard(0, Some("w1"), 5_000)],
            roles: vec![role("archivist", Some("w1"), 9_000), role("auditor", Some("w1"), 9_000)],
            waiting_ms: Some(u64::MAX),
        };
        assert!(view().is_settled(), "operations may wait for as long as they like");
        assert!(!View { workers: Vec::new(), ..view() }.is_settled());
        assert!(!View { shards: vec![shard(0, None, 0)], ..view() }.is_settled());
        assert!(!View { roles: Vec::new(), ..view() }.is_settled());
    }

    #[test]
    fn a_clock_may_differ_a_little() {
        assert!(clock(0).well && clock(-OFFSET_MS_MAX).well);
        assert!(!clock(OFFSET_MS_MAX + 1).well && !clock(-OFFSET_MS_MAX - 1).well);
    }
}
