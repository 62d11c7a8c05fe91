//! WordPiece, as the model's vocabulary wants it: lower case, no accents, punctuation and ideographs
//! alone, then the longest piece of the vocabulary again and again, with `##` for what continues a
//! word. A word that cannot be put together of pieces is unknown as a whole.

use std::collections::HashMap;

use super::characters::{Characters, is_ideograph};

/// Longer words are unknown.
const WORD_CHARS_MAX: usize = 100;

#[derive(Debug)]
pub struct Tokenizer {
    characters: Characters,
    /// Pieces that begin a word.
    beginnings: HashMap<&'static str, u32>,
    /// Pieces that continue one, without the `##`.
    continuations: HashMap<&'static str, u32>,
    piece_bytes_max: usize,
}

impl Tokenizer {
    /// A piece's number is its line.
    pub fn new(vocabulary: &'static str, characters: Characters) -> Self {
        let (mut beginnings, mut continuations, mut piece_bytes_max) = (HashMap::new(), HashMap::new(), 0);
        for (number, piece) in (0..).zip(vocabulary.lines()) {
            match piece.strip_prefix("##") {
                Some(rest) if !rest.is_empty() => continuations.insert(rest, number),
                _ => beginnings.insert(piece, number),
            };
            piece_bytes_max = piece_bytes_max.max(piece.len());
        }
        Self { characters, beginnings, continuations, piece_bytes_max }
    }

    /// Calls back with the number of each known piece, in order, for at most so many characters.
    pub fn each(&self, text: &str, chars_max: usize, mut tell: impl FnMut(u32)) {
        let mut word = Word::default();
        let mut pieces = Vec::new();
        for c in text.chars().take(chars_max) {
            if self.characters.is_nothing(c) {
                continue;
            }
            if c.is_whitespace() {
                self.end(&mut word, &mut pieces, &mut tell);
                continue;
            }
            let alone = is_ideograph(c);
            if alone {
                self.end(&mut word, &mut pieces, &mut tell);
            }
            for lower in c.to_lowercase() {
                self.characters.fold(lower, &mut |plain| {
                    if self.characters.is_punctuation(plain) {
                        self.end(&mut word, &mut pieces, &mut tell);
                        word.push(plain);
                        self.end(&mut word, &mut pieces, &mut tell);
                    } else {
                        word.push(plain);
                    }
                });
            }
            if alone {
                self.end(&mut word, &mut pieces, &mut tell);
            }
        }
        self.end(&mut word, &mut pieces, &mut tell);
    }

    /// Tells the pieces of a word, and makes room for the next one.
    fn end(&self, word: &mut Word, pieces: &mut Vec<u32>, tell: &mut impl FnMut(u32)) {
        if word.chars > 0 && word.chars <= WORD_CHARS_MAX && self.split(&word.text, pieces) {
            pieces.iter().copied().for_each(tell);
        }
        pieces.clear();
        word.text.clear();
        word.chars = 0;
    }

    /// Whether a word is made of pieces, and of which.
    fn split(&self, word: &str, pieces: &mut Vec<u32>) -> bool {
        let mut start = 0;
        while start < word.len() {
            let known = if start == 0 { &self.beginnings } else { &self.continuations };
            let longest = word.len().min(start + self.piece_bytes_max);
            let found = (start + 1..=longest)
                .rev()
                .filter(|end| word.is_char_boundary(*end))
                .find_map(|end| Some((end, *known.get(&word[start..end])?)));
            let Some((end, number)) = found else { return false };
            pieces.push(number);
            start = end;
        }
        true
    }
}

#[derive(Debug, Default)]
struct Word {
    text: String,
    chars: usize,
}

impl Word {
    fn push(&mut self, c: char) {
        self.chars += 1;
        // What is too long anyway is not kept.
        if self.chars <= WORD_CHARS_MAX {
            self.text.push(c);
        }
    }
}
