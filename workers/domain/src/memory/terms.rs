//! The words of a search and how well a text matches them: BM25 (Robertson and Zaragoza, "The
//! Probabilistic Relevance Framework", 2009), over the memories that the search looks at.
//!
//! Words are runs of letters and digits in lower case. Scripts without spaces between words are taken
//! character by character.

use std::collections::HashMap;

use schemas::limits::MEMORY_QUERY_TERMS_MAX;
use xxhash_rust::xxh3::xxh3_64;

/// How soon more of the same word counts no more, and how much long texts are held back: the usual
/// values.
const SATURATION: f64 = 1.2;
const LENGTH_SHARE: f64 = 0.75;

/// The different words of a search text.
#[derive(Debug, Clone, Default)]
pub struct Terms(HashMap<String, usize>);

/// The words of a text, counted once for all searches. Words are known by their hashes: among those of one
/// agent's memories no two have the same, for all that can be told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bag {
    /// In the order of the hashes.
    counts: Box<[(u64, u32)]>,
    words: u32,
}

/// How often a text has each word that is looked for, and how long it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts {
    pub found: Vec<u32>,
    pub words: u32,
}

impl Terms {
    /// The first `limits::MEMORY_QUERY_TERMS_MAX` different words.
    pub fn of(text: &str) -> Self {
        let mut terms = HashMap::new();
        each_word(text, &mut |word: &str| {
            let next = terms.len();
            if next < MEMORY_QUERY_TERMS_MAX && !terms.contains_key(word) {
                terms.insert(word.to_owned(), next);
            }
        });
        Self(terms)
    }

    /// The words with a blank between them, in no order.
    pub fn joined(&self) -> String {
        self.0.keys().map(String::as_str).collect::<Vec<_>>().join(" ")
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The same as [`Terms::count`] of the text.
    pub fn count_in(&self, bag: &Bag) -> Counts {
        let mut counts = Counts { found: vec![0; self.len()], words: bag.words };
        for (word, index) in &self.0 {
            counts.found[*index] = bag.count(xxh3_64(word.as_bytes()));
        }
        counts
    }

    /// Counts the words of a text that comes in parts.
    pub fn count<'t>(&self, parts: impl IntoIterator<Item = &'t str>) -> Counts {
        let mut counts = Counts { found: vec![0; self.len()], words: 0 };
        for part in parts {
            each_word(part, &mut |word: &str| {
                counts.words = counts.words.saturating_add(1);
                if let Some(index) = self.0.get(word) {
                    counts.found[*index] = counts.found[*index].saturating_add(1);
                }
            });
        }
        counts
    }
}

impl Bag {
    /// Of a text that comes in parts.
    pub fn of<'t>(parts: impl IntoIterator<Item = &'t str>) -> Self {
        let mut hashes = Vec::new();
        for part in parts {
            each_word(part, &mut |word: &str| hashes.push(xxh3_64(word.as_bytes())));
        }
        hashes.sort_unstable();
        let words = u32::try_from(hashes.len()).unwrap_or(u32::MAX);
        let counted =
            hashes.chunk_by(|a, b| a == b).map(|same| (same[0], u32::try_from(same.len()).unwrap_or(u32::MAX)));
        Self { counts: counted.collect(), words }
    }

    /// Memory that it takes besides itself.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.counts)
    }

    fn count(&self, hash: u64) -> u32 {
        self.counts.binary_search_by_key(&hash, |(hash, _)| *hash).map_or(0, |at| self.counts[at].1)
    }
}

/// What all texts of a search together say about its words.
#[derive(Debug, Clone, Default)]
pub struct Collection {
    texts: u64,
    words: u64,
    /// Texts that have a word.
    having: Vec<u64>,
}

impl Collection {
    pub fn add(&mut self, counts: &Counts) {
        self.having.resize(counts.found.len(), 0);
        self.texts += 1;
        self.words += u64::from(counts.words);
        for (having, found) in self.having.iter_mut().zip(&counts.found) {
            *having += u64::from(*found > 0);
        }
    }

    /// Adds texts without any of the words, as long as the others are on average.
    pub fn add_others(&mut self, texts: u64) {
        let average = self.words.checked_div(self.texts).unwrap_or(0);
        self.words = self.words.saturating_add(average.saturating_mul(texts));
        self.texts = self.texts.saturating_add(texts);
    }

    /// How well a text of the collection matches, from 0 to 1. A text of usual length that has every
    /// word once gets 1: rare words count most, and a word that no text has still counts as missing.
    pub fn score(&self, counts: &Counts) -> f64 {
        let average = (self.words as f64 / self.texts.max(1) as f64).max(1.0);
        let length = 1.0 - LENGTH_SHARE + LENGTH_SHARE * f64::from(counts.words) / average;
        let (mut score, mut best) = (0.0, 0.0);
        for (index, found) in counts.found.iter().enumerate() {
            let weight = self.weight(index);
            let found = f64::from(*found);
            score += weight * found * (SATURATION + 1.0) / (found + SATURATION * length);
            best += weight;
        }
        if best > 0.0 { (score / best).min(1.0) } else { 0.0 }
    }

    /// Inverse document frequency, never negative.
    fn weight(&self, index: usize) -> f64 {
        let having = self.having.get(index).copied().unwrap_or(0) as f64;
        ((self.texts as f64 - having + 0.5) / (having + 0.5) + 1.0).ln()
    }
}

/// The words of a text that comes in parts, with a blank between them: an index that splits at blanks
/// has the same words as a search.
pub fn spaced<'t>(parts: impl IntoIterator<Item = &'t str>) -> String {
    let mut words = String::new();
    for part in parts {
        each_word(part, &mut |word: &str| {
            if !words.is_empty() {
                words.push(' ');
            }
            words.push_str(word);
        });
    }
    words
}

/// Calls back with each word. One buffer serves all: a search reads many texts.
fn each_word(text: &str, tell: &mut impl FnMut(&str)) {
    let mut word = String::new();
    for c in text.chars() {
        let alone = is_word_alone(c);
        if (alone || !c.is_alphanumeric()) && !word.is_empty() {
            tell(&word);
            word.clear();
        }
        if alone {
            word.push(c);
            tell(&word);
            word.clear();
        } else if c.is_ascii() {
            if c.is_ascii_alphanumeric() {
                word.push(c.to_ascii_lowercase());
            }
        } else if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
    }
    if !word.is_empty() {
        tell(&word);
    }
}

/// Han, kana and Thai, which have no spaces between words.
fn is_word_alone(c: char) -> bool {
    matches!(c, '\u{E01}'..='\u{E2E}' | '\u{3041}'..='\u{30FA}' | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}'
        | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{2FA1F}')
}
