//! Conversations: what users posted is there once, every turn ends with its answer, calls and
//! results are pairs, and models and tools were asked for what is recorded, and for nothing else.

mod asked;
mod posts;
mod results;
mod spending;
mod stream;
mod tools;
mod transcript;
mod turns;
mod verdicts;

use std::collections::BTreeSet;

use super::Findings;
use crate::seen::Seen;
use crate::seen::talk::{Talk, Turn};

pub fn check(seen: &Seen, findings: &mut Findings) {
    let operations = turns_of(seen).flat_map(|(_, turn)| &turn.operations);
    let is_over = |state: &str| matches!(state, "cancelled" | "failed");
    let over: BTreeSet<&str> =
        operations.filter(|one| is_over(&one.state)).map(|operation| operation.id.as_str()).collect();
    for talk in &seen.talks {
        posts::check(talk, findings);
        transcript::check(talk, findings);
        turns::check(talk, &over, findings);
        results::check(talk, findings);
        spending::check(talk, findings);
        stream::check(talk, findings);
    }
    tools::check(seen, findings);
    verdicts::check(seen, findings);
    asked::check(seen, findings);
}

/// All turns, each with the conversation that it belongs to.
fn turns_of(seen: &Seen) -> impl Iterator<Item = (&Talk, &Turn)> {
    seen.talks.iter().flat_map(|talk| talk.turns.iter().map(move |turn| (talk, turn)))
}
