//! What models were asked: at least once for each recorded move, with the same words each time, and
//! for no turn that is not there.

use std::collections::{BTreeMap, BTreeSet};

use super::super::Findings;
use super::turns_of;
use crate::seen::Seen;

pub fn check(seen: &Seen, findings: &mut Findings) {
    let mut contents: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for asked in &seen.asked {
        contents.entry(&asked.key).or_default().insert(&asked.content);
    }
    let mut known: BTreeSet<&str> = BTreeSet::new();
    for (talk, turn) in turns_of(seen) {
        known.insert(&turn.id);
        // A result, or guidance, that comes between two tries is told by the second one.
        let may_differ = talk.guided || turn.operations.iter().any(|operation| operation.is_async);
        for one in &turn.moves {
            let key = format!("{}.{}", turn.id, one.number);
            let count = contents.get(key.as_str()).map_or(0, BTreeSet::len);
            let id = Some(talk.id.as_str());
            // What is cut short may be so before its model is asked.
            findings.expect("model not asked", id, count > 0 || one.cut, || {
                format!("move {key} is recorded, and nobody asked")
            });
            findings.expect("model asked otherwise", id, count <= 1 || may_differ, || {
                format!("move {key} was asked for with {count} different requests")
            });
        }
    }
    for key in contents.keys() {
        let turn = key.rsplit_once('.').map_or(*key, |(turn, _)| turn);
        findings.expect("model asked from nowhere", None, known.contains(turn), || {
            format!("{key} was asked for, and there is no such turn")
        });
    }
}
