//! Leases and tokens through faults.

use async_trait::async_trait;
use domain::failure::Failure;
use domain::ports::{Heard, Lease, Leases, RoleInfo, ShardInfo, TokenRow, Tokens, WorkerInfo};
use schemas::id::{Epoch, Shard, WorkerId};

use super::{Port, Unreliable};

#[async_trait]
impl<P: Leases + ?Sized> Leases for Unreliable<P> {
    async fn shard_count(&self) -> Result<u16, Failure> {
        self.faults.call(Port::Leases, "leases.shard_count", self.inner.shard_count()).await
    }

    async fn heartbeat(&self, info: &WorkerInfo) -> Result<Heard, Failure> {
        self.faults.call(Port::Leases, "leases.heartbeat", self.inner.heartbeat(info)).await
    }

    async fn workers(&self, max_age_ms: i64) -> Result<Vec<WorkerInfo>, Failure> {
        self.faults.call(Port::Leases, "leases.workers", self.inner.workers(max_age_ms)).await
    }

    async fn deregister(&self, worker: &WorkerId) -> Result<(), Failure> {
        self.faults.call(Port::Leases, "leases.deregister", self.inner.deregister(worker)).await
    }

    async fn set_draining(&self, worker: &WorkerId) -> Result<bool, Failure> {
        self.faults.call(Port::Leases, "leases.set_draining", self.inner.set_draining(worker)).await
    }

    async fn claim(&self, shard: Shard, worker: &WorkerId, lease_ms: u64) -> Result<Option<Lease>, Failure> {
        self.faults.call(Port::Leases, "leases.claim", self.inner.claim(shard, worker, lease_ms)).await
    }

    async fn renew(&self, worker: &WorkerId, leases: &[Lease], lease_ms: u64) -> Result<Vec<Lease>, Failure> {
        self.faults.call(Port::Leases, "leases.renew", self.inner.renew(worker, leases, lease_ms)).await
    }

    async fn release(&self, worker: &WorkerId, lease: &Lease) -> Result<(), Failure> {
        self.faults.call(Port::Leases, "leases.release", self.inner.release(worker, lease)).await
    }

    async fn hold_role(&self, role: &str, worker: &WorkerId, lease_ms: u64) -> Result<Option<Epoch>, Failure> {
        self.faults.call(Port::Leases, "leases.hold_role", self.inner.hold_role(role, worker, lease_ms)).await
    }

    async fn release_role(&self, role: &str, worker: &WorkerId) -> Result<(), Failure> {
        self.faults.call(Port::Leases, "leases.release_role", self.inner.release_role(role, worker)).await
    }

    async fn roles(&self) -> Result<Vec<RoleInfo>, Failure> {
        self.faults.call(Port::Leases, "leases.roles", self.inner.roles()).await
    }

    async fn release_all(&self) -> Result<(), Failure> {
        self.faults.call(Port::Leases, "leases.release_all", self.inner.release_all()).await
    }

    async fn release_gone(&self) -> Result<Vec<WorkerId>, Failure> {
        self.faults.call(Port::Leases, "leases.release_gone", self.inner.release_gone()).await
    }

    async fn shards(&self) -> Result<Vec<ShardInfo>, Failure> {
        self.faults.call(Port::Leases, "leases.shards", self.inner.shards()).await
    }
}

#[async_trait]
impl<P: Tokens + ?Sized> Tokens for Unreliable<P> {
    async fn put(&self, token: &TokenRow) -> Result<(), Failure> {
        self.faults.call(Port::Ledger, "tokens.put", self.inner.put(token)).await
    }

    async fn all(&self) -> Result<Vec<TokenRow>, Failure> {
        self.faults.call(Port::Ledger, "tokens.all", self.inner.all()).await
    }

    async fn remove(&self, name: &str) -> Result<bool, Failure> {
        self.faults.call(Port::Ledger, "tokens.remove", self.inner.remove(name)).await
    }
}
