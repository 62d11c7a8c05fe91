//! The `Leases` port, on the store's own clock.

use async_trait::async_trait;
use domain::failure::Failure;
use domain::ports::{Heard, Lease, Leases, RoleInfo, ShardInfo, WorkerInfo};
use schemas::id::{Epoch, Shard, WorkerId};

use super::MemStore;
use super::state::{Claimed, State};
use crate::fake::breakage::Breakage;

#[async_trait]
impl Leases for MemStore {
    async fn shard_count(&self) -> Result<u16, Failure> {
        Ok(self.transaction().shards.len() as u16)
    }

    async fn heartbeat(&self, info: &WorkerInfo) -> Result<Heard, Failure> {
        let now = self.now_ms();
        let mut state = self.transaction();
        let told = state.workers.get(&info.worker).is_some_and(|(known, _)| known.draining);
        let draining = told || info.draining;
        let known = WorkerInfo { draining, heartbeat_age_ms: 0, ..info.clone() };
        state.workers.insert(info.worker.clone(), (known, now));
        Ok(Heard { draining, newer_schema: state.newer_schema })
    }

    async fn workers(&self, max_age_ms: i64) -> Result<Vec<WorkerInfo>, Failure> {
        let now = self.now_ms();
        let state = self.transaction();
        let aged = state.workers.values().map(|(info, at)| WorkerInfo { heartbeat_age_ms: now - at, ..info.clone() });
        Ok(aged.filter(|info| info.heartbeat_age_ms < max_age_ms).collect())
    }

    async fn deregister(&self, worker: &WorkerId) -> Result<(), Failure> {
        self.transaction().workers.remove(worker);
        Ok(())
    }

    async fn set_draining(&self, worker: &WorkerId) -> Result<bool, Failure> {
        let mut state = self.transaction();
        let Some((info, _)) = state.workers.get_mut(worker) else { return Ok(false) };
        info.draining = true;
        Ok(true)
    }

    async fn claim(&self, shard: Shard, worker: &WorkerId, lease_ms: u64) -> Result<Option<Lease>, Failure> {
        let now = self.now_ms();
        let (steal, reuse) = (self.breakages.on(Breakage::ClaimHeldShard), self.breakages.on(Breakage::ReuseEpoch));
        let mut state = self.transaction();
        let Some(rec) = state.shard(shard) else { return Ok(None) };
        let holder = rec.owner.clone().filter(|_| rec.lease_until_ms > now);
        if holder.is_some() && !(steal && holder.as_ref() != Some(worker)) {
            return Ok(None);
        }
        rec.owner = Some(worker.clone());
        rec.epoch += i64::from(!reuse || rec.epoch == 0);
        rec.lease_until_ms = now + lease_ms as i64;
        let epoch = Epoch(rec.epoch);
        state.claim_log.push(Claimed { shard, epoch, owner: worker.clone(), at_ms: now, taken_from: holder });
        Ok(Some(Lease { shard, epoch }))
    }

    async fn renew(&self, worker: &WorkerId, leases: &[Lease], lease_ms: u64) -> Result<Vec<Lease>, Failure> {
        let until = self.now_ms() + lease_ms as i64;
        let mut state = self.transaction();
        let mut held = Vec::new();
        for lease in leases {
            if state.holds(worker, lease)
                && let Some(rec) = state.shard(lease.shard)
            {
                rec.lease_until_ms = until;
                held.push(lease.clone());
            }
        }
        Ok(held)
    }

    async fn release(&self, worker: &WorkerId, lease: &Lease) -> Result<(), Failure> {
        let mut state = self.transaction();
        if state.holds(worker, lease)
            && let Some(rec) = state.shard(lease.shard)
        {
            rec.owner = None;
        }
        Ok(())
    }

    async fn hold_role(&self, role: &str, worker: &WorkerId, lease_ms: u64) -> Result<Option<Epoch>, Failure> {
        let now = self.now_ms();
        let mut state = self.transaction();
        let rec = state.roles.entry(role.to_owned()).or_default();
        let is_mine = rec.owner.as_ref() == Some(worker);
        if !is_mine && rec.owner.is_some() && rec.lease_until_ms > now {
            return Ok(None);
        }
        if !is_mine {
            rec.owner = Some(worker.clone());
            rec.epoch += 1;
        }
        rec.lease_until_ms = now + lease_ms as i64;
        Ok(Some(Epoch(rec.epoch)))
    }

    async fn release_role(&self, role: &str, worker: &WorkerId) -> Result<(), Failure> {
        let mut state = self.transaction();
        if let Some(rec) = state.roles.get_mut(role).filter(|rec| rec.owner.as_ref() == Some(worker)) {
            rec.owner = None;
        }
        Ok(())
    }

    async fn roles(&self) -> Result<Vec<RoleInfo>, Failure> {
        let now = self.now_ms();
        let state = self.transaction();
        let infos = state.roles.iter().map(|(role, rec)| RoleInfo {
            role: role.clone(),
            owner: rec.owner.clone(),
            epoch: Epoch(rec.epoch),
            lease_ms_left: rec.lease_until_ms.saturating_sub(now),
        });
        Ok(infos.collect())
    }

    async fn release_all(&self) -> Result<(), Failure> {
        let mut state = self.transaction();
        for rec in &mut state.shards {
            rec.owner = None;
        }
        for rec in state.roles.values_mut() {
            rec.owner = None;
        }
        Ok(())
    }

    async fn release_gone(&self) -> Result<Vec<WorkerId>, Failure> {
        let mut state = self.transaction();
        let gone: Vec<WorkerId> = state.workers.keys().filter(|id| state.gone.contains(id)).cloned().collect();
        for worker in &gone {
            state.workers.remove(worker);
            for rec in state.shards.iter_mut().filter(|rec| rec.owner.as_ref() == Some(worker)) {
                rec.owner = None;
            }
        }
        Ok(gone)
    }

    async fn shards(&self) -> Result<Vec<ShardInfo>, Failure> {
        let now = self.now_ms();
        let state = self.transaction();
        let infos = state.shards.iter().enumerate().map(|(n, rec)| ShardInfo {
            shard: Shard(n as u16),
            owner: rec.owner.clone(),
            epoch: Epoch(rec.epoch),
            lease_ms_left: rec.lease_until_ms.saturating_sub(now),
            seq: rec.seq,
            archived_seq: rec.archived_seq,
        });
        Ok(infos.collect())
    }
}

impl State {
    fn holds(&mut self, worker: &WorkerId, lease: &Lease) -> bool {
        self.shard(lease.shard).is_some_and(|rec| rec.owner.as_ref() == Some(worker) && rec.epoch == lease.epoch.0)
    }
}
