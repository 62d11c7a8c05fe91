//! The log of a conversation is numbered without a gap, and nothing is there twice. Contexts, records
//! of calls, and replies that only say something have places that the transcript does not show.

use std::collections::BTreeSet;

use super::super::Findings;
use crate::seen::talk::{Talk, Turn};

pub fn check(talk: &Talk, findings: &mut Findings) {
    let id = Some(talk.id.as_str());
    let ordered = talk.said.windows(2).all(|pair| pair[0].offset < pair[1].offset);
    findings.expect("transcript out of order", id, ordered, || "its places do not grow".into());
    let unshown = talk.turns.iter().flat_map(|turn| &turn.moves).filter(|one| one.calls.is_empty());
    let offsets: Vec<u64> = talk.said.iter().map(|said| said.offset).chain(unshown.map(|one| one.offset)).collect();
    let places: BTreeSet<u64> = offsets.iter().copied().collect();
    findings.expect("transcript repeats", id, places.len() == offsets.len(), || {
        format!("{} records share {} places", offsets.len(), places.len())
    });
    let known = offsets.len() as u64 + talk.turns.iter().map(hidden).sum::<u64>();
    findings.expect("transcript has a gap", id, known == talk.last_offset, || {
        format!("{known} records are known, and the log ends at {}", talk.last_offset)
    });
    let within = places.last().is_none_or(|last| *last <= talk.last_offset) && !places.contains(&0);
    findings.expect("transcript has a gap", id, within, || {
        format!("there are places beyond 1 to {}, where the log ends", talk.last_offset)
    });
}

/// Records of a turn whose places nobody tells.
fn hidden(turn: &Turn) -> u64 {
    turn.spent.len() as u64 + u64::from(turn.assembled)
}
