//! Ordered inputs: the texts of `echo` are its inputs, each once, in the order of their lane, and
//! for a client that waited for each answer also in its own order.

use std::collections::BTreeMap;

use super::{Findings, Story};

pub fn check(story: &Story<'_>, findings: &mut Findings) {
    let session = story.session;
    if session.moniker != "echo" {
        return;
    }
    let given: Vec<&str> =
        story.succeeded(&["input"]).into_iter().filter_map(|(sent, _)| sent.mark.as_deref()).collect();
    let said: Vec<&str> =
        session.steps().filter_map(|step| step.text.as_deref()).filter(|text| text.starts_with("i-")).collect();
    let id = Some(session.id.as_str());
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for text in &said {
        *counts.entry(text).or_default() += 1;
    }
    for (text, count) in &counts {
        findings.expect("input applied twice", id, *count == 1, || format!("{text} is echoed {count} times"));
    }
    for text in given.iter().filter(|text| !counts.contains_key(**text)) {
        findings.add("input lost", id, format!("{text} succeeded and is never echoed"));
    }
    for text in counts.keys().filter(|text| !given.contains(text)) {
        findings.add("input from nowhere", id, format!("{text} is echoed, and its action did not succeed"));
    }
    if given.len() == said.len() && given != said && counts.values().all(|count| *count == 1) {
        let at = given.iter().zip(&said).position(|(a, b)| a != b).unwrap_or(0);
        findings.add("inputs out of order", id, format!("place {at}: {} is due, {} is echoed", given[at], said[at]));
    }
    accepted_in_order(story, findings);
}

/// What one client sends after the answer to what it sent before has the higher number.
fn accepted_in_order(story: &Story<'_>, findings: &mut Findings) {
    let over_http = story.sent.iter().filter(|(sent, _)| sent.kind == "input" && !sent.amqp);
    let numbers: Vec<u64> = over_http.filter_map(|(_, row)| row.and_then(|row| row.seq)).filter(|n| *n > 0).collect();
    findings.expect("accepted out of order", Some(&story.session.id), numbers.is_sorted(), || {
        format!("inputs sent one after the other are numbered {numbers:?}")
    });
}
