//! A history has no gap and no repeat: offsets, iterations, tokens, and what the steps say.

use super::{Findings, Story};
use crate::seen::{Item, Session, Step};

pub fn check(story: &Story<'_>, findings: &mut Findings) {
    let session = story.session;
    offsets(session, findings);
    iterations(session, findings);
    tokens(session, findings);
    listed(session, findings);
    if session.moniker == "count" {
        counted(session, findings);
    }
}

fn offsets(session: &Session, findings: &mut Findings) {
    let events: Vec<&Item> = session.items.iter().filter(|item| item.kind != "end").collect();
    for (item, expected) in events.iter().zip(1..) {
        if item.offset != expected {
            let what = format!("offset {expected} is followed by {} ({})", item.offset, item.kind);
            findings.add("offsets", Some(&session.id), what);
            return;
        }
    }
    let last = events.last().map_or(0, |item| item.offset);
    findings.expect("offsets", Some(&session.id), last == session.last_offset, || {
        format!("the last event read is {last}, the session says {}", session.last_offset)
    });
}

fn iterations(session: &Session, findings: &mut Findings) {
    for (step, expected) in session.steps().zip(0..) {
        if step.iteration != expected {
            let kind = if step.iteration < expected { "step repeated" } else { "step missing" };
            let what = format!("iteration {} comes where {expected} should", step.iteration);
            findings.add(kind, Some(&session.id), what);
            return;
        }
    }
}

fn tokens(session: &Session, findings: &mut Findings) {
    let steps: Vec<&Step> = session.steps().collect();
    for pair in steps.windows(2) {
        findings.expect("token chain", Some(&session.id), pair[0].next == pair[1].token, || {
            let (a, b) = (pair[0], pair[1]);
            format!("step {} leads to {}, step {} begins with {}", a.iteration, a.next, b.iteration, b.token)
        });
    }
    if let Some(first) = steps.first() {
        findings.expect("token chain", Some(&session.id), first.token == "start", || {
            format!("the first step begins with {}", first.token)
        });
    }
}

/// The two ways to read steps agree.
fn listed(session: &Session, findings: &mut Findings) {
    let streamed: Vec<(u64, &str)> = session.steps().map(|step| (step.iteration, step.id.as_str())).collect();
    let listed: Vec<(u64, &str)> = session.listed.iter().map(|(n, id)| (*n, id.as_str())).collect();
    if streamed != listed {
        let at = streamed.iter().zip(&listed).position(|(a, b)| a != b).unwrap_or(streamed.len().min(listed.len()));
        let (many, few) = (streamed.len(), listed.len());
        let what = format!("the stream has {many} steps and the list {few}; they part at place {at}");
        findings.add("reads differ", Some(&session.id), what);
    }
}

/// Each step of `count` is one more than the one before, or what guidance said.
fn counted(session: &Session, findings: &mut Findings) {
    let mut n = 0;
    for step in session.steps().filter(|step| step.status == "ok") {
        let expected = step.set.unwrap_or(n + 1);
        let said = step.text.as_deref().and_then(|text| text.parse::<i64>().ok());
        if said != Some(expected) {
            let what = format!("step {} says {said:?} where {expected} should be", step.iteration);
            findings.add("state lost", Some(&session.id), what);
            return;
        }
        n = expected;
    }
}
