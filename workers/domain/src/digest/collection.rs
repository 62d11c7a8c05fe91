//! The digest of many documents in bounded space: the best sentences so far with their documents,
//! and in how many documents each telling term was met.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};

use super::words::{Language, tokens};
use super::{DocumentDigest, Ranked};

/// Sentences kept for the digest of digests.
pub const CANDIDATES_MAX: usize = 60;
/// Terms kept with their numbers of documents.
pub const TERMS_MAX: usize = 240;
/// Sentences that one document may bring in.
const PER_DOCUMENT_MAX: usize = 4;
const TITLE_CHARS_MAX: usize = 80;
/// A sentence with as many copies in other documents is no matter of its own.
const COPIES_MAX: u32 = 2;
/// Repeated sentences that are remembered.
const REPEATED_KEPT: usize = 12;
/// Shared words above this share make two sentences the same.
const SAME: f32 = 0.6;

/// A sentence that may stand in the digest of digests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    pub text: String,
    pub document: String,
    /// The document's first heading, shortened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// From 0 to 1: rank in its document, weighed by the document's size.
    pub score: f32,
    pub position: usize,
    /// In how many more documents nearly the same sentence was met.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub copies: u32,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// Number of documents a term was met in, and how it is written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Met {
    pub documents: u32,
    pub word: String,
    /// Sum of its weights in them.
    pub weight: f32,
}

/// All documents so far. Its size is bounded, whatever their number.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Collection {
    pub documents: u32,
    pub words: u64,
    #[serde(default)]
    pub languages: BTreeMap<Language, u32>,
    pub candidates: Vec<Candidate>,
    pub terms: BTreeMap<String, Met>,
}

impl Collection {
    /// Takes a document in.
    pub fn add(&mut self, document: &str, digest: &DocumentDigest) {
        self.documents += 1;
        self.words += digest.words as u64;
        *self.languages.entry(digest.language).or_default() += 1;
        for term in &digest.terms {
            let met = self.terms.entry(term.stem.clone()).or_insert_with(|| Met {
                documents: 0,
                word: term.word.clone(),
                weight: 0.0,
            });
            met.documents += 1;
            met.weight = round(met.weight + term.weight);
        }
        self.prune_terms();
        let mut sets: Vec<HashSet<String>> = self.candidates.iter().map(|c| word_set(&c.text)).collect();
        let mut best: Vec<&Ranked> = digest.sentences.iter().collect();
        best.sort_by(|a, b| b.score.total_cmp(&a.score));
        for sentence in best.into_iter().take(PER_DOCUMENT_MAX) {
            self.offer(document, digest, sentence, &mut sets);
        }
        self.prune_candidates();
    }

    fn offer(&mut self, document: &str, digest: &DocumentDigest, sentence: &Ranked, sets: &mut Vec<HashSet<String>>) {
        let set = word_set(&sentence.text);
        if let Some(same) = sets.iter().position(|other| alike(other, &set) >= SAME) {
            let same = &mut self.candidates[same];
            same.copies += u32::from(same.document != document);
            return;
        }
        // A sentence out of a long document stands for more; the logarithm keeps that modest.
        let size = ((1.0 + digest.words as f32).ln() / 10f32.ln() / 3.5).clamp(0.3, 1.2);
        self.candidates.push(Candidate {
            text: sentence.text.clone(),
            document: document.to_owned(),
            title: digest.title.as_ref().map(|title| title.chars().take(TITLE_CHARS_MAX).collect()),
            score: round(sentence.score * size),
            position: sentence.position,
            copies: 0,
        });
        sets.push(set);
    }

    fn prune_terms(&mut self) {
        if self.terms.len() <= TERMS_MAX {
            return;
        }
        let mut order: Vec<(u32, f32, String)> =
            self.terms.iter().map(|(stem, met)| (met.documents, met.weight, stem.clone())).collect();
        order.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)).then_with(|| a.2.cmp(&b.2)));
        // Some room is made at once, so that new terms get a chance to be met again.
        for (_, _, stem) in order.drain(TERMS_MAX * 3 / 4..) {
            self.terms.remove(&stem);
        }
    }

    fn prune_candidates(&mut self) {
        if self.candidates.len() <= CANDIDATES_MAX {
            return;
        }
        let mut order: Vec<(usize, f32)> = self.values().into_iter().enumerate().collect();
        // What is known to be repeated is kept, to know it again, though never shown.
        let mut repeated: Vec<usize> =
            (0..order.len()).filter(|at| self.candidates[*at].copies >= COPIES_MAX).collect();
        repeated.sort_by_key(|at| std::cmp::Reverse(self.candidates[*at].copies));
        repeated.into_iter().take(REPEATED_KEPT).for_each(|at| order[at].1 = f32::MAX);
        order.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let kept: HashSet<usize> = order.into_iter().take(CANDIDATES_MAX).map(|(at, _)| at).collect();
        let mut at = 0;
        self.candidates.retain(|_| {
            at += 1;
            kept.contains(&(at - 1))
        });
    }

    /// How much each candidate is worth to the whole: its own score, how much it speaks of what
    /// many documents speak of, less for each better one of the same document.
    pub(super) fn values(&self) -> Vec<f32> {
        let language = self.language();
        let themes: Vec<f32> = self.candidates.iter().map(|c| self.theme(&c.text, language)).collect();
        let top = themes.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
        let mut values: Vec<f32> =
            self.candidates.iter().zip(&themes).map(|(c, theme)| c.score * (0.5 + 0.5 * theme / top)).collect();
        let before = values.clone();
        for (at, candidate) in self.candidates.iter().enumerate() {
            let better =
                self.candidates.iter().enumerate().filter(|(other, c)| {
                    c.document == candidate.document && (before[*other], at) > (before[at], *other)
                });
            values[at] *= 0.8f32.powi(better.count() as i32);
        }
        values
    }

    /// Met in several documents: a notice, a footer, a redirection. With few documents, a copy may
    /// as well be the matter.
    pub(super) fn is_repeated(&self, candidate: &Candidate) -> bool {
        candidate.copies >= COPIES_MAX && self.documents >= 6
    }

    /// The language of most documents.
    pub(super) fn language(&self) -> Language {
        let most = self.languages.iter().max_by(|a, b| a.1.cmp(b.1).then(b.0.cmp(a.0)));
        most.map_or(Language::English, |(language, _)| *language)
    }

    /// Weight of the collection's terms in a sentence.
    fn theme(&self, text: &str, language: Language) -> f32 {
        let stems = language.stems(text);
        let unique: HashSet<&String> = stems.iter().collect();
        let single: f32 = unique.into_iter().map(|stem| self.telling(stem)).sum();
        let pairs: f32 = stems.windows(2).map(|two| self.telling(&format!("{} {}", two[0], two[1]))).sum();
        (single + pairs) / (4.0 + stems.len() as f32)
    }

    /// How telling a term is for the collection: met in several documents and much in them, but
    /// not in nearly all, for then it tells nothing apart.
    pub(super) fn telling(&self, stem: &str) -> f32 {
        match self.terms.get(stem) {
            Some(met) if met.documents > 1 || self.documents < 4 => {
                let documents = met.documents as f32;
                let rare = (1.0 + self.documents as f32 / documents).ln();
                met.weight / documents * documents.sqrt() * rare
            }
            _ => 0.0,
        }
    }
}

pub(super) fn word_set(text: &str) -> HashSet<String> {
    tokens(text).into_iter().collect()
}

/// Share of common words, from 0 to 1.
pub(super) fn alike(a: &HashSet<String>, b: &HashSet<String>) -> f32 {
    let common = a.intersection(b).count() as f32;
    common / (a.len() + b.len()) as f32 * 2.0
}

/// Three decimals: the state is written at every step.
fn round(x: f32) -> f32 {
    (x * 1_000.0).round() / 1_000.0
}
