//! S1: one owner per shard and epoch, and commits only from it.

use std::collections::BTreeMap;

use domain::invariant::Invariant;

use super::Findings;
use crate::world::World;

pub fn check(world: &World, findings: &mut Findings) {
    let mut owners = BTreeMap::new();
    for claim in world.store.claim_log() {
        let (place, owner) = ((claim.shard, claim.epoch), claim.owner.clone());
        let before = owners.insert(place, owner);
        findings
            .expect(Invariant::S1, before.is_none(), || format!("{place:?} is claimed twice: {before:?}, {claim:?}"));
        findings.expect(Invariant::S1, claim.taken_from.is_none(), || format!("a held shard is claimed: {claim:?}"));
    }
    let mut newest = BTreeMap::new();
    for commit in world.store.commit_log() {
        let (shard, epoch) = (commit.shard, commit.epoch);
        let owner = owners.get(&(shard, epoch));
        findings.expect(Invariant::S1, owner == Some(&commit.owner), || {
            format!("{} commits for {shard} under {epoch}, owned by {owner:?}", commit.owner)
        });
        let before = newest.insert(shard, epoch);
        findings.expect(Invariant::S1, before.is_none_or(|before| before <= epoch), || {
            format!("a commit under {epoch} of shard {shard} follows one under {before:?}")
        });
    }
}
