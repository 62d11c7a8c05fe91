//! Every recorded call of a tool has one recorded result, every result a call, and no operation
//! outlives its turn.

use std::collections::BTreeSet;

use super::super::Findings;
use crate::seen::talk::{Move, Talk, Turn};

pub fn check(talk: &Talk, findings: &mut Findings) {
    let mut known: BTreeSet<&str> = BTreeSet::new();
    for turn in &talk.turns {
        for one in &turn.moves {
            known.extend(one.background.iter().map(|(_, operation)| operation.as_str()));
            calls(talk, turn, one, findings);
        }
        let open = turn.operations.iter().filter(|operation| matches!(operation.state.as_str(), "pending" | "running"));
        for operation in open.filter(|_| turn.status != "active") {
            let what = format!("{} of turn {} is {}", operation.id, turn.id, operation.state);
            findings.add("operation left open", Some(&talk.id), what);
        }
    }
    for operation in talk.said.iter().filter_map(late).filter(|operation| !known.contains(operation)) {
        let what = format!("{operation} has a result, and no call led to it");
        findings.add("result from nowhere", Some(&talk.id), what);
    }
}

/// The operation whose result this entry of the transcript is, if its turn had gone on.
fn late(said: &crate::seen::talk::Said) -> Option<&str> {
    said.operation.as_deref().filter(|_| said.event == "tool_result")
}

fn calls(talk: &Talk, turn: &Turn, one: &Move, findings: &mut Findings) {
    let id = Some(talk.id.as_str());
    for call in &one.calls {
        let background = one.background.iter().find(|(of, _)| of == call).map(|(_, operation)| operation.as_str());
        let count = match background {
            Some(operation) => talk.said.iter().filter_map(late).filter(|late| *late == operation).count(),
            None => one.results.iter().filter(|result| result.call == *call).count(),
        };
        let place = || format!("{call} of move {} of turn {} has {count} results", one.number, turn.id);
        findings.expect("result repeated", id, count <= 1, place);
        findings.expect("result lost", id, count > 0 || turn.status != "completed", place);
    }
    for result in one.results.iter().filter(|result| !one.calls.contains(&result.call)) {
        let what = format!("move {} of turn {} has a result of {:?}", one.number, turn.id, result.call);
        findings.add("result from nowhere", id, what);
    }
}
