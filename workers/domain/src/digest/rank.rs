//! Ranks the sentences of one text.

use std::collections::HashSet;
use std::sync::Arc;

use super::fitness::Sentence;
use super::vectors::Index;
use super::words::Language;

/// Sentences that enter the graph; of a longer text, those nearest to the whole.
const GRAPH_MAX: usize = 400;
/// Sentences less alike than this are no neighbours.
const LIKENESS_FLOOR: f32 = 0.08;
const DAMPING: f32 = 0.85;
const ROUNDS: usize = 25;

/// Sentences fit for a digest with their scores (the best has 1), best first.
pub fn rank(body: &[Sentence], index: &Index, title: Option<&str>, language: Language) -> Vec<(usize, f32)> {
    let chosen = shortlist(body, index);
    let walk = walk(&index.graph(&chosen, LIKENESS_FLOOR));
    let top_walk = top(walk.iter().copied());
    let top_central = top(chosen.iter().map(|&at| index.centrality(at)));
    let title: HashSet<String> = title.map(|t| language.stems(t).into_iter().collect()).unwrap_or_default();
    let mut under = Under::default();
    let blocks = body.last().map_or(1, |last| last.block + 1);
    let mut ranked: Vec<(usize, f32)> = chosen
        .iter()
        .zip(&walk)
        .map(|(&at, walked)| {
            let sentence = &body[at];
            let stems: HashSet<String> = language.stems(&sentence.text).into_iter().collect();
            let base = 0.40 * walked / top_walk
                + 0.25 * index.centrality(at) / top_central
                + 0.30 * standing(sentence, blocks)
                + 0.15 * overlap(&stems, &title)
                + 0.10 * overlap(&stems, under.stems(sentence, language))
                + 0.25 * definition(&sentence.text, &title, language);
            (at, base * sentence.fitness)
        })
        .collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let best = ranked.first().map_or(1.0, |(_, score)| score.max(f32::MIN_POSITIVE));
    ranked.iter_mut().for_each(|(_, score)| *score /= best);
    ranked
}

fn shortlist(body: &[Sentence], index: &Index) -> Vec<usize> {
    let mut fit: Vec<usize> = (0..body.len()).filter(|&at| body[at].fitness > 0.0).collect();
    if fit.len() > GRAPH_MAX {
        let key = |at: usize| index.centrality(at) * body[at].fitness;
        fit.sort_by(|&a, &b| key(b).total_cmp(&key(a)).then(a.cmp(&b)));
        fit.truncate(GRAPH_MAX);
        fit.sort_unstable();
    }
    fit
}

/// Where a random reader ends up who goes from sentence to like sentence.
fn walk(graph: &[Vec<(usize, f32)>]) -> Vec<f32> {
    let count = graph.len().max(1) as f32;
    let degree: Vec<f32> = graph.iter().map(|near| near.iter().map(|(_, w)| w).sum::<f32>()).collect();
    let mut rank = vec![1.0 / count; graph.len()];
    for _ in 0..ROUNDS {
        rank = graph
            .iter()
            .map(|near| {
                let from: f32 = near.iter().map(|(other, w)| rank[*other] * w / degree[*other]).sum();
                (1.0 - DAMPING) / count + DAMPING * from
            })
            .collect();
    }
    rank
}

/// What comes first in a text, and first in a paragraph, is meant to introduce.
fn standing(sentence: &Sentence, blocks: usize) -> f32 {
    let early = 1.0 / (1.0 + 0.25 * sentence.block as f32);
    let closing = if blocks > 6 && sentence.block + 2 >= blocks { 0.2 } else { 0.0 };
    let opening = if sentence.within == 0 { 0.3 } else { 0.0 };
    (early * (1.0 - 0.2 * sentence.within.min(3) as f32) + closing + opening).min(1.2)
}

/// Stems of the heading a sentence stands under; neighbours share it.
#[derive(Default)]
struct Under {
    heading: Option<Arc<str>>,
    stems: HashSet<String>,
}

impl Under {
    fn stems(&mut self, sentence: &Sentence, language: Language) -> &HashSet<String> {
        if self.heading != sentence.heading {
            self.heading = sentence.heading.clone();
            self.stems = self.heading.as_deref().map(|h| language.stems(h).into_iter().collect()).unwrap_or_default();
        }
        &self.stems
    }
}

fn overlap(stems: &HashSet<String>, title: &HashSet<String>) -> f32 {
    if title.is_empty() {
        return 0.0;
    }
    title.intersection(stems).count() as f32 / title.len() as f32
}

/// Verbs by which a sentence says what a thing is or is for.
const DEFINING: &[&str] = &[
    " is a ",
    " is an ",
    " is the ",
    " are the ",
    " is used to ",
    " provides ",
    " describes ",
    " defines ",
    " lets you ",
    " allows ",
    " enables ",
    " implements ",
    " consists of ",
    " refers to ",
    " means ",
    " supports ",
    " explains ",
    " specifies ",
    " makes it possible ",
    " ist ein",
    " est un",
    " es un",
];

/// From 0 to 1: a sentence that says early on what its subject is.
fn definition(text: &str, title: &HashSet<String>, language: Language) -> f32 {
    let lower = text.to_lowercase();
    let Some(at) = DEFINING.iter().filter_map(|verb| lower.find(verb)).min() else { return 0.0 };
    let subject = &lower[..at];
    if subject.split_whitespace().count() > 6 {
        return 0.0;
    }
    let named = language.stems(subject).iter().any(|stem| title.contains(stem));
    if named || subject.starts_with("this ") { 1.0 } else { 0.4 }
}

fn top(values: impl Iterator<Item = f32>) -> f32 {
    values.fold(f32::MIN_POSITIVE, f32::max)
}
