//! Every accepted action has exactly one outcome; every refused one a recorded refusal.

use std::collections::{BTreeMap, BTreeSet};

use super::Findings;
use crate::seen::{Seen, Told};

/// What clients of a run may be refused with: their session ended while they spoke.
const REFUSALS: [&str; 1] = ["session_ended"];

pub fn check(seen: &Seen, findings: &mut Findings) {
    let known: BTreeSet<&str> = seen.sessions.iter().map(|session| session.id.as_str()).collect();
    for sent in &seen.sent {
        let (id, session) = (&sent.id, Some(sent.session.as_str()));
        let row = seen.actions.get(id);
        match (&sent.told, row) {
            (Told::Accepted | Told::Confirmed, None) => {
                let told = &sent.told;
                findings.add("action lost", session, format!("{id} ({}) was {told:?}, and there is no row", sent.kind));
            }
            (Told::Nothing, _) => {
                findings.add("client unheard", session, format!("{id} ({}) never got an answer", sent.kind));
            }
            (Told::Refused(code), _) if !REFUSALS.contains(&code.as_str()) => {
                findings.add("client refused", session, format!("{id} ({}) was refused with {code}", sent.kind));
            }
            (Told::Refused(code), row) => {
                let recorded = row.is_some_and(|row| row.processed && row.outcome.as_deref() == Some("rejected"));
                findings.expect("refusal unrecorded", session, recorded, || {
                    format!("{id} was refused with {code}, and its row is {row:?}")
                });
            }
            (Told::Accepted | Told::Confirmed, Some(_)) => {}
        }
        if let Some(row) = row {
            findings.expect("action unprocessed", session, row.processed && row.outcome.is_some(), || {
                format!("{id} ({}) has no outcome: {row:?}", sent.kind)
            });
            let accepted = row.outcome.as_deref() != Some("rejected");
            findings.expect("session lost", session, !accepted || known.contains(sent.session.as_str()), || {
                format!("{id} ({}) is accepted, and its session is not to be found", sent.kind)
            });
        }
    }
    applied_once(seen, findings);
    numbered_once(seen, findings);
}

/// No action shows twice in a history: with one event, or a creation with its start.
fn applied_once(seen: &Seen, findings: &mut Findings) {
    for session in &seen.sessions {
        let mut events: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for item in &session.items {
            if let Some(action) = &item.action {
                *events.entry((action, &item.kind)).or_default() += 1;
            }
        }
        for ((action, kind), count) in events {
            findings.expect("action applied twice", Some(&session.id), count == 1, || {
                format!("{action} has {count} events of kind {kind}")
            });
        }
    }
}

/// A place in a lane belongs to one action.
fn numbered_once(seen: &Seen, findings: &mut Findings) {
    let mut places: BTreeMap<(&str, &str, u64), &str> = BTreeMap::new();
    for sent in &seen.sent {
        let Some(row) = seen.actions.get(&sent.id) else { continue };
        let Some(seq) = row.seq.filter(|seq| *seq > 0) else { continue };
        if let Some(other) = places.insert((&sent.session, &row.lane, seq), &sent.id)
            && other != sent.id
        {
            let what = format!("{other} and {} are both number {seq} of the {} lane", sent.id, row.lane);
            findings.add("place taken twice", Some(&sent.session), what);
        }
    }
}
