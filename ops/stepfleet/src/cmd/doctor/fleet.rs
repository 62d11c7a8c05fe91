//! What only a fleet of several processes can have: clocks that differ, shards without an owner,
//! workers of different versions.

use std::collections::BTreeSet;

use domain::ports::WorkerInfo;
use schemas::limits::LEASE_MS;

use super::report::Report;
use crate::fleet::Store;

/// More than this confuses whoever reads two logs side by side; nothing else depends on it.
const OFFSET_MS_MAX: i64 = 1_000;
const WORKER_AGE_MS: i64 = 3 * LEASE_MS as i64;

pub async fn look(store: &Store, report: &mut Report) {
    match store.clock_offset_ms().await {
        Ok(offset) => report.add(
            "clock",
            offset.abs() <= OFFSET_MS_MAX,
            format!("the database's clock is {offset} ms ahead of this machine's; leases use the database's"),
        ),
        Err(error) => report.add("clock", false, error.to_string()),
    }
    match store.leases.workers(WORKER_AGE_MS).await {
        Ok(workers) => report.add("workers", !workers.is_empty(), told(&workers)),
        Err(error) => report.add("workers", false, error.to_string()),
    }
    match store.leases.shards().await {
        Ok(shards) => {
            let orphans: Vec<String> = shards
                .iter()
                .filter(|shard| shard.owner.is_none() || shard.lease_ms_left <= 0)
                .map(|shard| shard.shard.to_string())
                .collect();
            let detail = match orphans.as_slice() {
                [] => format!("all {} have a live owner", shards.len()),
                some => format!("without a live owner: {}; start a worker", some.join(", ")),
            };
            report.add("leases", orphans.is_empty(), detail);
        }
        Err(error) => report.add("leases", false, error.to_string()),
    }
}

fn told(workers: &[WorkerInfo]) -> String {
    if workers.is_empty() {
        return "none gives a sign of life; start one with `stepfleet worker`".to_owned();
    }
    let versions: BTreeSet<&str> = workers.iter().map(|worker| worker.version.as_str()).collect();
    let draining = workers.iter().filter(|worker| worker.draining).count();
    let versions: Vec<&str> = versions.into_iter().collect();
    format!("{} alive, {draining} of them draining, versions {}", workers.len(), versions.join(" and "))
}
