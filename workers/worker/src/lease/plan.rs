//! What to do about which shard: a pure function of the rows everybody sees.

use domain::ports::{Lease, ShardInfo};
use domain::shard::target_owner;
use schemas::id::{Shard, WorkerId};

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    pub claim: Vec<Shard>,
    pub give: Vec<Shard>,
    /// Leases in our name that we do not run: the answer to a claim or a release was lost.
    pub stray: Vec<Lease>,
}

/// How a worker sees the fleet.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    pub me: &'a WorkerId,
    /// Those who run shards and are not about to leave.
    pub alive: &'a [WorkerId],
    /// Shards that are handed over at a time, at most.
    pub moves: usize,
}

impl View<'_> {
    /// Claims the free shards that are ours by target; gives at most `moves` that are another's.
    /// A shard held by a live worker is never claimed: its holder gives it. Stray leases are given
    /// back, and claimed like others after that.
    pub fn plan(&self, shards: &[ShardInfo], runs_here: impl Fn(&Lease) -> bool) -> Plan {
        let mut plan = Plan::default();
        for info in shards {
            let target = target_owner(info.shard, self.alive);
            let is_free = info.owner.is_none() || info.lease_ms_left <= 0;
            if !is_free && info.owner.as_ref() == Some(self.me) {
                let lease = Lease { shard: info.shard, epoch: info.epoch };
                if !runs_here(&lease) {
                    plan.stray.push(lease);
                } else if target.is_some_and(|target| target != self.me) && plan.give.len() < self.moves {
                    plan.give.push(info.shard);
                }
                continue;
            }
            if is_free && target == Some(self.me) {
                plan.claim.push(info.shard);
            }
        }
        plan
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schemas::id::Epoch;

    const MOVES: usize = 4;

    fn worker(n: usize) -> WorkerId {
        WorkerId::parse(&format!("w{n}")).unwrap()
    }

    fn shard(n: u16, owner: Option<WorkerId>, left: i64) -> ShardInfo {
        ShardInfo { shard: Shard(n), owner, epoch: Epoch(1), lease_ms_left: left, seq: 0, archived_seq: 0 }
    }

    fn plan(me: &WorkerId, alive: &[WorkerId], shards: &[ShardInfo]) -> Plan {
        View { me, alive, moves: MOVES }.plan(shards, |_| true)
    }

    #[test]
    fn everybody_together_claims_every_free_shard_once() {
        let alive: Vec<_> = (0..3).map(worker).collect();
        let shards: Vec<_> = (0..32).map(|n| shard(n, None, 0)).collect();
        let mut claimed: Vec<_> = alive.iter().flat_map(|w| plan(w, &alive, &shards).claim).collect();
        claimed.sort();
        assert_eq!(claimed, (0..32).map(Shard).collect::<Vec<_>>());
    }

    #[test]
    fn more_workers_than_shards_leave_some_idle_and_no_shard_alone() {
        let alive: Vec<_> = (0..9).map(worker).collect();
        let shards: Vec<_> = (0..4).map(|n| shard(n, None, 0)).collect();
        let claims: Vec<usize> = alive.iter().map(|w| plan(w, &alive, &shards).claim.len()).collect();
        assert_eq!(claims.iter().sum::<usize>(), 4);
        assert!(claims.contains(&0));
    }

    #[test]
    fn a_live_owner_is_not_robbed_and_gives_a_few_at_a_time() {
        let (old, new) = (worker(0), worker(1));
        let alive = [old.clone(), new.clone()];
        let shards: Vec<_> = (0..32).map(|n| shard(n, Some(old.clone()), 5_000)).collect();
        assert_eq!(plan(&new, &alive, &shards), Plan::default());
        assert_eq!(plan(&old, &alive, &shards).give.len(), MOVES);
        let ended: Vec<_> = (0..32).map(|n| shard(n, Some(old.clone()), 0)).collect();
        assert!(!plan(&new, std::slice::from_ref(&new), &ended).claim.is_empty());
    }

    #[test]
    fn one_worker_alone_takes_all_and_keeps_all() {
        let me = worker(0);
        let shards: Vec<_> = (0..32).map(|n| shard(n, (n % 2 == 0).then(|| me.clone()), 5_000)).collect();
        let plan = plan(&me, std::slice::from_ref(&me), &shards);
        assert_eq!((plan.claim.len(), plan.give.len(), plan.stray.len()), (16, 0, 0));
    }

    #[test]
    fn a_lease_whose_claim_went_unanswered_is_given_back() {
        let me = worker(0);
        let view = View { me: &me, alive: std::slice::from_ref(&me), moves: MOVES };
        let lease = |n| Lease { shard: Shard(n), epoch: Epoch(1) };
        let shards =
            [shard(0, Some(me.clone()), 5_000), shard(1, Some(me.clone()), 5_000), shard(2, Some(me.clone()), 0)];
        let plan = view.plan(&shards, |held| *held == lease(0));
        assert_eq!(plan, Plan { claim: vec![Shard(2)], give: vec![], stray: vec![lease(1)] });
    }
}
