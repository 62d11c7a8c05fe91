//! Live streams: over all reconnections a follower got each event once, in order, to the end.

use super::Findings;
use crate::seen::{Heard, Item, Seen};

pub fn check(seen: &Seen, findings: &mut Findings) {
    for stream in &seen.streams {
        let id = Some(stream.session.as_str());
        let Some(session) = seen.sessions.iter().find(|session| session.id == stream.session) else {
            findings.add("stream", id, "a session was followed that is not to be found".into());
            continue;
        };
        for (Heard { offset, kind, .. }, expected) in stream.items.iter().zip(1..) {
            if *offset != expected {
                let fault = if *offset < expected { "stream repeats" } else { "stream has a gap" };
                findings.add(fault, id, format!("offset {offset} ({kind}) comes where {expected} should"));
                break;
            }
        }
        let whole: Vec<(u64, &str, &str)> = session.items.iter().filter(|item| item.kind != "end").map(told).collect();
        let live: Vec<(u64, &str, &str)> =
            stream.items.iter().map(|heard| (heard.offset, &*heard.kind, &*heard.what)).collect();
        if let Some(at) = live.iter().zip(&whole).position(|(a, b)| a != b) {
            let what = format!("event {} was {:?} live and is {:?} now", at + 1, live[at], whole[at]);
            findings.add("stream differs", id, what);
        }
        findings.expect("stream incomplete", id, stream.ended && live.len() == whole.len(), || {
            let end = if stream.ended { "an end" } else { "no end" };
            format!("{} of {} events arrived, and {end}", live.len(), whole.len())
        });
    }
}

fn told(item: &Item) -> (u64, &str, &str) {
    let what = item.step.as_ref().map(|step| step.id.as_str()).or(item.action.as_deref()).unwrap_or_default();
    (item.offset, &item.kind, what)
}
