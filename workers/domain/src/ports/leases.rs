//! Ownership of shards and of single roles (DESIGN 4). All times are the database's own.

use async_trait::async_trait;
use schemas::id::{Epoch, Shard, WorkerId};

use crate::failure::Failure;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub shard: Shard,
    pub epoch: Epoch,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardInfo {
    pub shard: Shard,
    pub owner: Option<WorkerId>,
    pub epoch: Epoch,
    /// Milliseconds until the lease ends; negative once it has.
    pub lease_ms_left: i64,
    pub seq: u64,
    pub archived_seq: u64,
}

/// A role that somebody has held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleInfo {
    pub role: String,
    pub owner: Option<WorkerId>,
    pub epoch: Epoch,
    /// Milliseconds until the lease ends; negative once it has.
    pub lease_ms_left: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerInfo {
    pub worker: WorkerId,
    pub host: String,
    pub version: String,
    pub roles: Vec<String>,
    pub draining: bool,
    pub heartbeat_age_ms: i64,
}

impl WorkerInfo {
    /// Whether it takes operations.
    pub fn runs_operations(&self) -> bool {
        !self.draining && self.roles.iter().any(|role| role == "executor")
    }
}

/// What a worker hears when it says that it is there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Heard {
    /// It was told to drain.
    pub draining: bool,
    /// The version of the store's schema, if it is one of a newer release than the one that asks.
    pub newer_schema: Option<i64>,
}

#[async_trait]
pub trait Leases: Send + Sync {
    /// The number of shards, fixed at installation.
    async fn shard_count(&self) -> Result<u16, Failure>;

    /// Registers a worker or renews its registration. A store that can (see [`Self::release_gone`])
    /// takes note of the process that asks.
    async fn heartbeat(&self, info: &WorkerInfo) -> Result<Heard, Failure>;

    /// Workers with a heartbeat younger than `max_age_ms`.
    async fn workers(&self, max_age_ms: i64) -> Result<Vec<WorkerInfo>, Failure>;

    /// Removes a worker that ends in good order.
    async fn deregister(&self, worker: &WorkerId) -> Result<(), Failure>;

    async fn set_draining(&self, worker: &WorkerId) -> Result<bool, Failure>;

    /// Takes a shard that nobody holds (released, or its lease ended); its epoch grows by one.
    /// `None`: somebody holds it.
    async fn claim(&self, shard: Shard, worker: &WorkerId, lease_ms: u64) -> Result<Option<Lease>, Failure>;

    /// Extends the given leases; returns those that are still held.
    async fn renew(&self, worker: &WorkerId, leases: &[Lease], lease_ms: u64) -> Result<Vec<Lease>, Failure>;

    /// Gives a shard back. A later epoch is left alone.
    async fn release(&self, worker: &WorkerId, lease: &Lease) -> Result<(), Failure>;

    /// Takes a role of which a fleet needs one holder (the archivist's, say), or extends it. `Some`:
    /// it is held until `lease_ms` from now, under this epoch, which grows by one at each change of
    /// holder. `None`: somebody else holds it. A lease that ran out is still its holder's until
    /// another takes it.
    async fn hold_role(&self, role: &str, worker: &WorkerId, lease_ms: u64) -> Result<Option<Epoch>, Failure>;

    /// Gives a role back; left alone if somebody else holds it.
    async fn release_role(&self, role: &str, worker: &WorkerId) -> Result<(), Failure>;

    /// The roles that somebody has held so far, by name.
    async fn roles(&self) -> Result<Vec<RoleInfo>, Failure>;

    /// Ends every lease, of shards and of roles: for an embedded fleet, which holds its data
    /// directory exclusively.
    async fn release_all(&self) -> Result<(), Failure>;

    /// Ends registration and leases of every worker whose process the store knows to be gone,
    /// because what it held open for it has closed: takes milliseconds, where a lease takes seconds.
    /// Returns whose. A store that sees no processes returns nothing, and the leases run out.
    async fn release_gone(&self) -> Result<Vec<WorkerId>, Failure> {
        Ok(Vec::new())
    }

    async fn shards(&self) -> Result<Vec<ShardInfo>, Failure>;
}
