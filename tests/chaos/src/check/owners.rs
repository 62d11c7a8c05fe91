//! Ownership of shards as it was sampled during the run, and at the end.

use std::collections::BTreeMap;

use super::Findings;
use crate::seen::Seen;

pub fn check(seen: &Seen, findings: &mut Findings) {
    // Shard and epoch name one owner, for ever.
    let mut terms: BTreeMap<(u64, i64), &str> = BTreeMap::new();
    let mut newest: BTreeMap<u64, i64> = BTreeMap::new();
    for sample in &seen.owners {
        let before = newest.insert(sample.shard, sample.epoch).unwrap_or(i64::MIN);
        findings.expect("epoch went back", None, sample.epoch >= before, || {
            format!("shard {} went from epoch {before} to {}", sample.shard, sample.epoch)
        });
        let Some(owner) = sample.owner.as_deref() else { continue };
        let holder = *terms.entry((sample.shard, sample.epoch)).or_insert(owner);
        findings.expect("second owner", None, holder == owner, || {
            format!("epoch {} of shard {} belongs to {holder} and to {owner}", sample.epoch, sample.shard)
        });
    }
    for (shard, owner, left) in &seen.fleet.shards {
        let lives = owner.as_ref().is_some_and(|owner| seen.fleet.workers.contains(owner)) && *left > 0;
        findings.expect("shard without owner", None, lives, || {
            format!("at the end shard {shard} belongs to {owner:?}, whose lease has {left} ms left")
        });
    }
    findings.expect("shard without owner", None, !seen.fleet.shards.is_empty(), || "no shard was listed".into());
}
