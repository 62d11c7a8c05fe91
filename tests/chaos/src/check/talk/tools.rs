//! What the harness's own tools saw: keys of calls that must not be repeated came once, every call is
//! an operation's, and every answer that a turn has was given.

use std::collections::{BTreeMap, BTreeSet};

use super::super::Findings;
use super::turns_of;
use crate::seen::{Call, Seen};

pub fn check(seen: &Seen, findings: &mut Findings) {
    let mut by_key: BTreeMap<&str, Vec<&Call>> = BTreeMap::new();
    for call in &seen.tools {
        by_key.entry(&call.key).or_default().push(call);
    }
    let operations: BTreeSet<&str> =
        turns_of(seen).flat_map(|(_, turn)| &turn.operations).map(|operation| operation.id.as_str()).collect();
    for (key, calls) in &by_key {
        let once = calls.iter().all(|call| !call.once) || calls.len() == 1;
        findings.expect("tool called twice", None, once, || {
            let answers: Vec<&str> = calls.iter().map(|call| call.answer.as_str()).collect();
            format!("{key} was to be called at most once and was called {} times: {answers:?}", calls.len())
        });
        // A key is the namespace and the operation.
        let known = key.split_once(':').is_some_and(|(_, operation)| operations.contains(operation));
        findings.expect("tool called from nowhere", None, known, || format!("{key} is the key of no operation"));
    }
    for (talk, turn) in turns_of(seen) {
        for key in turn.moves.iter().flat_map(|one| &one.results).filter_map(|result| result.key.as_deref()) {
            let answered = by_key.get(key).is_some_and(|calls| calls.iter().any(|call| call.answer == "answered"));
            let own = key.split_once(':').is_some_and(|(_, operation)| operation.starts_with(turn.id.as_str()));
            findings.expect("tool answer from nowhere", Some(&talk.id), answered && own, || {
                format!("turn {} has the answer to {key}, which was not given to it", turn.id)
            });
        }
    }
}
