//! Which shards to claim and which to give: a pure function of the rows everybody sees.

use domain::ports::ShardInfo;
use domain::shard::target_owner;
use schemas::id::{Shard, WorkerId};

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    pub claim: Vec<Shard>,
    pub give: Vec<Shard>,
}

/// Claims the free shards that are ours by target; gives at most `moves` that are another's.
/// A shard held by a live worker is never claimed: its holder gives it.
pub(super) fn plan(me: &WorkerId, alive: &[WorkerId], shards: &[ShardInfo], moves: usize) -> Plan {
    let mut plan = Plan::default();
    for info in shards {
        let target = target_owner(info.shard, alive);
        let is_free = info.owner.is_none() || info.lease_ms_left <= 0;
        let is_mine = !is_free && info.owner.as_ref() == Some(me);
        match target {
            Some(target) if target == me && is_free => plan.claim.push(info.shard),
            Some(target) if target != me && is_mine && plan.give.len() < moves => plan.give.push(info.shard),
            _ => {}
        }
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use schemas::id::Epoch;

    fn worker(n: usize) -> WorkerId {
        WorkerId::parse(&format!("w{n}")).unwrap()
    }

    fn shard(n: u16, owner: Option<WorkerId>, left: i64) -> ShardInfo {
        ShardInfo { shard: Shard(n), owner, epoch: Epoch(1), lease_ms_left: left, seq: 0, archived_seq: 0 }
    }

    #[test]
    fn everybody_together_claims_every_free_shard_once() {
        let alive: Vec<_> = (0..3).map(worker).collect();
        let shards: Vec<_> = (0..32).map(|n| shard(n, None, 0)).collect();
        let mut claimed: Vec<_> = alive.iter().flat_map(|w| plan(w, &alive, &shards, 4).claim).collect();
        claimed.sort();
        assert_eq!(claimed, (0..32).map(Shard).collect::<Vec<_>>());
    }

    #[test]
    fn a_live_owner_is_not_robbed_and_gives_a_few_at_a_time() {
        let (old, new) = (worker(0), worker(1));
        let alive = [old.clone(), new.clone()];
        let shards: Vec<_> = (0..32).map(|n| shard(n, Some(old.clone()), 5_000)).collect();
        assert_eq!(plan(&new, &alive, &shards, 4), Plan::default());
        assert_eq!(plan(&old, &alive, &shards, 4).give.len(), 4);
        let ended: Vec<_> = (0..32).map(|n| shard(n, Some(old.clone()), 0)).collect();
        assert!(!plan(&new, std::slice::from_ref(&new), &ended, 4).claim.is_empty());
    }

    #[test]
    fn one_worker_alone_takes_all_and_keeps_all() {
        let me = worker(0);
        let shards: Vec<_> = (0..32).map(|n| shard(n, (n % 2 == 0).then(|| me.clone()), 5_000)).collect();
        let plan = plan(&me, std::slice::from_ref(&me), &shards, 4);
        assert_eq!((plan.claim.len(), plan.give.len()), (16, 0));
    }
}
