//! What was spent is counted once: a turn has used what its calls of the model have, and what the
//! agents that it called have.

use super::super::Findings;
use crate::seen::talk::Talk;

pub fn check(talk: &Talk, findings: &mut Findings) {
    for turn in &talk.turns {
        let id = Some(talk.id.as_str());
        let own = turn.spent.iter().flatten();
        let of_others = turn.moves.iter().flat_map(|one| &one.results).map(|result| &result.usage);
        let sum = own.chain(of_others).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        findings.expect("spending", id, sum == turn.usage, || {
            format!("turn {} has used {:?} tokens, and its records have {sum:?}", turn.id, turn.usage)
        });
        let whole = turn.moves.iter().filter(|one| !one.cut).count();
        findings.expect("spending", id, turn.replies == whole, || {
            format!("turn {} has {whole} whole moves and {} calls that brought a reply", turn.id, turn.replies)
        });
    }
}
