//! Extractive digests: the sentences of a text that say most of it, and of many texts together.
//! Pure text work without a model: cut into blocks, split into sentences, rank, pick.
//!
//! The ranking is a sentence graph (as in TextRank and LexRank) combined with the closeness to the
//! whole text, position, headings and the marks of a sentence that stands alone; the pick weighs
//! relevance against repetition (maximal marginal relevance).

mod blocks;
mod boilerplate;
mod collection;
mod fitness;
mod inline;
mod overview;
mod phrases;
mod pick;
mod rank;
mod sentences;
mod terms;
mod topics;
mod vectors;
mod words;

pub use collection::{CANDIDATES_MAX, Candidate, Collection, TERMS_MAX};
pub use overview::{Overview, Point, Source, Topic};

pub use terms::Term;
pub use words::Language;

use blocks::{Block, Kind};

/// Longer texts are cut here, at a character boundary: ranking is for reading, not for archives.
pub const TEXT_BYTES_MAX: usize = 2 << 20;

/// What one document says, in its own words.
#[derive(Debug, Clone, PartialEq)]
pub struct DocumentDigest {
    /// The first heading, if the document has one.
    pub title: Option<String>,
    /// The picked sentences, in the order of the document.
    pub sentences: Vec<Ranked>,
    /// What the document is about, most telling first: stem and how it is written.
    pub terms: Vec<Term>,
    pub language: Language,
    /// Words of running text; code, tables and boilerplate are not counted.
    pub words: usize,
    pub sentences_seen: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Ranked {
    pub text: String,
    /// From 0 to 1; 1 is the best sentence of its document.
    pub score: f32,
    /// Number of the sentence within the running text, from 0.
    pub position: usize,
}

/// Digests one text into at most `count` sentences.
pub fn digest(text: &str, count: usize) -> DocumentDigest {
    let blocks = blocks::split(cut(text));
    let title = title(&blocks);
    let language = Language::of(blocks.iter().map(|block| block.text.as_str()));
    let body = fitness::collect(&blocks, language);
    let index = vectors::Index::new(&body, language);
    let ranked = rank::rank(&body, &index, title.as_deref(), language);
    let picked = pick::pick(&ranked, &index, count);
    DocumentDigest {
        terms: terms::of(&body, title.as_deref(), language),
        words: body.iter().map(|sentence| sentence.words).sum(),
        sentences_seen: body.len(),
        sentences: picked.into_iter().map(|(at, score)| ranked_sentence(&body[at], at, score)).collect(),
        language,
        title,
    }
}

/// A heading of the first rank, or whatever heading comes first of all; of a manual, its NAME line.
fn title(blocks: &[Block]) -> Option<String> {
    if let [name, line, ..] = blocks
        && name.text.eq_ignore_ascii_case("name")
        && line.kind == Kind::Paragraph
    {
        return Some(line.text.clone());
    }
    let top = blocks.iter().find(|block| block.kind == Kind::Heading(1));
    let first = blocks.first().filter(|block| matches!(block.kind, Kind::Heading(_)));
    top.or(first).map(|block| block.text.clone())
}

fn ranked_sentence(sentence: &fitness::Sentence, position: usize, score: f32) -> Ranked {
    let mut text = sentence.text.clone();
    if !sentences::ends(&text) {
        text.push('.');
    }
    Ranked { text, score, position }
}

fn cut(text: &str) -> &str {
    if text.len() <= TEXT_BYTES_MAX {
        return text;
    }
    let mut end = TEXT_BYTES_MAX;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests;
