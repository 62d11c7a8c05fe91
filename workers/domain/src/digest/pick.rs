//! Picks sentences that are relevant and do not repeat each other (maximal marginal relevance).

use super::vectors::Index;

/// Weight of relevance against repetition.
const RELEVANCE: f32 = 0.7;
/// More alike than this is a repetition, however relevant.
const REPEATED: f32 = 0.75;
/// Worse than this share of the best is filler.
const SCORE_FLOOR: f32 = 0.12;
/// Candidates looked at for each pick.
const POOL_MAX: usize = 200;

/// At most `count` of the ranked sentences, in the order of the text.
pub fn pick(ranked: &[(usize, f32)], index: &Index, count: usize) -> Vec<(usize, f32)> {
    let mut pool: Vec<(usize, f32, f32)> = ranked
        .iter()
        .take(POOL_MAX)
        .filter(|(_, score)| *score >= SCORE_FLOOR)
        .map(|(at, score)| (*at, *score, 0.0))
        .collect();
    let mut picked: Vec<(usize, f32)> = Vec::new();
    while picked.len() < count {
        let value = |(_, score, near): &(usize, f32, f32)| RELEVANCE * score - (1.0 - RELEVANCE) * near;
        let best = pool
            .iter()
            .enumerate()
            .filter(|(_, candidate)| candidate.2 < REPEATED)
            .max_by(|(i, a), (j, b)| value(a).total_cmp(&value(b)).then(j.cmp(i)))
            .map(|(place, _)| place);
        let Some(place) = best else { break };
        let (at, score, _) = pool.remove(place);
        picked.push((at, score));
        for candidate in &mut pool {
            candidate.2 = candidate.2.max(index.likeness(at, candidate.0));
        }
    }
    picked.sort_unstable_by_key(|(at, _)| *at);
    picked
}
