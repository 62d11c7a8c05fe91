//! Calls to the outside: what must happen at most once never happens twice, and whatever happened
//! is told by a step.

use std::collections::{BTreeMap, BTreeSet};

use super::Findings;
use crate::seen::{Call, Seen, Step};

pub fn check(seen: &Seen, findings: &mut Findings) {
    let mut by_key: BTreeMap<&str, Vec<&Call>> = BTreeMap::new();
    for call in &seen.calls {
        by_key.entry(&call.key).or_default().push(call);
    }
    let steps: BTreeMap<(&str, u64), &Step> = seen
        .sessions
        .iter()
        .flat_map(|session| session.steps().map(move |step| ((session.id.as_str(), step.iteration), step)))
        .collect();
    for (key, calls) in &by_key {
        let (Some(first), Some(place)) = (calls.first(), place_of(key)) else {
            findings.add("strange key", None, format!("a call has the key {key}"));
            continue;
        };
        if !first.once {
            continue;
        }
        let id = Some(first.session.as_str());
        // An answer that is a refusal leaves no doubt, so such a call may be made again.
        let undecided = calls.iter().filter(|call| call.answer != "failed").count();
        findings.expect("call made twice", id, undecided <= 1, || {
            let answers: Vec<&str> = calls.iter().map(|call| call.answer.as_str()).collect();
            format!("{key} was to be made at most once and arrived {} times: {answers:?}", calls.len())
        });
        let session = seen.sessions.iter().any(|session| session.id == first.session);
        let told = steps.contains_key(&(first.session.as_str(), place));
        findings.expect("call untold", id, told || !session || was_cut(seen, &first.session, place), || {
            format!("{key} was made, and no step tells of it")
        });
    }
    answered(seen, &by_key, findings);
}

/// The iteration of a key `namespace:session:iteration:index`.
fn place_of(key: &str) -> Option<u64> {
    key.rsplit(':').nth(1)?.parse().ok()
}

/// A destroy may cut the last step off in the middle of its call.
fn was_cut(seen: &Seen, session: &str, iteration: u64) -> bool {
    let Some(session) = seen.sessions.iter().find(|s| s.id == session) else { return false };
    let steps = session.steps().count() as u64;
    session.status == "stopped" && iteration == steps
}

/// A step that succeeded has a call that was answered.
fn answered(seen: &Seen, by_key: &BTreeMap<&str, Vec<&Call>>, findings: &mut Findings) {
    let answered: BTreeSet<(&str, u64)> = by_key
        .iter()
        .filter(|(_, calls)| calls.iter().any(|call| call.answer == "answered"))
        .filter_map(|(key, calls)| Some((calls.first()?.session.as_str(), place_of(key)?)))
        .collect();
    for session in seen.sessions.iter().filter(|session| session.moniker == "http") {
        for step in session.steps().filter(|step| step.status == "ok") {
            let known = answered.contains(&(session.id.as_str(), step.iteration));
            findings.expect("answer from nowhere", Some(&session.id), known, || {
                format!("step {} succeeded, and no call of it was answered", step.iteration)
            });
        }
    }
}
