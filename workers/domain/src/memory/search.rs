//! A search, sans I/O: rows are fed in, any number at a time and in any order; what comes out is which
//! of them are hits, best first. Of each row only a few numbers are kept.

use std::cmp::Ordering;

use schemas::id::MemoryId;

use super::filter::Traits;
use super::terms::{Bag, Collection, Counts, Terms};
use super::vector::Probe;
use super::{MemoryHit, MemoryQuery};
use schemas::memory::Memory;

/// A row as a search sees it.
#[derive(Debug, Clone, Copy)]
pub struct Scanned<'r> {
    pub id: &'r MemoryId,
    pub traits: Traits<'r>,
    pub words: Words<'r>,
    /// The stored vector and its model.
    pub embedding: Option<(&'r str, &'r [u8])>,
}

/// The words of a row.
#[derive(Debug, Clone, Copy)]
pub enum Words<'r> {
    /// Of content that overflowed, its beginning.
    Text { label: Option<&'r str>, content: &'r str },
    /// Counted before.
    Bag(&'r Bag),
}

/// A row that passed the filter.
#[derive(Debug)]
struct Candidate {
    id: MemoryId,
    similarity: Option<f64>,
    counts: Counts,
    significance: f64,
    updated_at_ms: i64,
}

/// A hit whose memory is still to be read.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranked {
    pub id: MemoryId,
    pub score: f64,
    pub relevance: f64,
}

#[derive(Debug)]
pub struct Search<'q> {
    query: &'q MemoryQuery,
    probe: Option<Probe<'q>>,
    terms: Terms,
    collection: Collection,
    candidates: Vec<Candidate>,
}

impl<'q> Search<'q> {
    pub fn new(query: &'q MemoryQuery) -> Self {
        Self {
            query,
            probe: query.embedding.as_ref().and_then(Probe::new),
            terms: Terms::of(&query.text),
            collection: Collection::default(),
            candidates: Vec::new(),
        }
    }

    /// Takes a row into account.
    pub fn see(&mut self, row: &Scanned<'_>) {
        if !self.query.filter.matches(&row.traits) {
            return;
        }
        let counts = match row.words {
            Words::Text { label, content } => self.terms.count(label.into_iter().chain([content])),
            Words::Bag(bag) => self.terms.count_in(bag),
        };
        self.collection.add(&counts);
        let similarity = match (&self.probe, row.embedding) {
            (Some(probe), Some((model, stored))) => probe.similarity(model, stored),
            _ => None,
        };
        // It counted for how common words are; but no order of it could make it a hit.
        if similarity.unwrap_or(0.0) <= 0.0 && counts.found.iter().all(|found| *found == 0) {
            return;
        }
        self.candidates.push(Candidate {
            id: row.id.clone(),
            similarity,
            counts,
            significance: row.traits.significance,
            updated_at_ms: row.traits.updated_at_ms,
        });
    }

    /// Takes texts into account that were not shown because they have none of the words: how rare a word
    /// is hangs on them, too.
    pub fn see_others(&mut self, texts: u64) {
        self.collection.add_others(texts);
    }

    /// Best first; of equal ones the newer, then the one with the smaller id.
    pub fn finish(self) -> Vec<Ranked> {
        let (weights, by_vector) = (&self.query.weights, self.probe.is_some());
        let mut ranked: Vec<(Ranked, i64)> = Vec::new();
        for candidate in self.candidates {
            let text = self.collection.score(&candidate.counts);
            let relevance = weights.relevance(by_vector, candidate.similarity, text);
            if relevance <= 0.0 || relevance < self.query.min_relevance {
                continue;
            }
            let score = weights.score(relevance, candidate.significance);
            ranked.push((Ranked { id: candidate.id, score, relevance }, candidate.updated_at_ms));
        }
        ranked.sort_by(order);
        ranked.truncate(self.query.limit);
        ranked.into_iter().map(|(ranked, _)| ranked).collect()
    }
}

fn order(a: &(Ranked, i64), b: &(Ranked, i64)) -> Ordering {
    b.0.score.total_cmp(&a.0.score).then_with(|| b.1.cmp(&a.1)).then_with(|| a.0.id.cmp(&b.0.id))
}

/// Puts the memories of hits into their order. One that was deleted meanwhile is no hit.
pub fn hits(ranked: Vec<Ranked>, mut memories: Vec<Memory>) -> Vec<MemoryHit> {
    let mut hits = Vec::with_capacity(ranked.len());
    for Ranked { id, score, relevance } in ranked {
        if let Some(at) = memories.iter().position(|memory| memory.id == id) {
            hits.push(MemoryHit { memory: memories.swap_remove(at), score, relevance });
        }
    }
    hits
}
