//! What a text is about: its most telling words and word pairs.

use std::collections::HashMap;

use super::fitness::Sentence;
use super::words::{Language, Word};

/// A word or a pair of words that a text keeps coming back to.
#[derive(Debug, Clone, PartialEq)]
pub struct Term {
    /// Its stems, joined by a space.
    pub stem: String,
    /// How the text writes it.
    pub word: String,
    pub weight: f32,
}

/// Terms kept of one text.
const TERMS_MAX: usize = 24;

#[derive(Default)]
struct Tally<'a> {
    sentences: f32,
    last: usize,
    forms: HashMap<&'a str, usize>,
}

/// The terms of a text, most telling first.
pub fn of(body: &[Sentence], title: Option<&str>, language: Language) -> Vec<Term> {
    let content: Vec<Vec<Word>> = body.iter().map(|s| language.content(&s.text)).collect();
    let mut words: HashMap<&str, Tally> = HashMap::new();
    let mut pairs: HashMap<(&str, &str), (f32, &str, &str)> = HashMap::new();
    for (at, sentence) in content.iter().enumerate() {
        for word in sentence {
            let tally = words.entry(&word.stem).or_default();
            tally.sentences += f32::from(u8::from(tally.last != at + 1));
            tally.last = at + 1;
            *tally.forms.entry(&word.text).or_default() += 1;
        }
        for two in sentence.windows(2) {
            if two[1].joined && two[0].stem != two[1].stem {
                pairs.entry((&two[0].stem, &two[1].stem)).or_insert((0.0, &two[0].text, &two[1].text)).0 += 1.0;
            }
        }
    }
    let title: Vec<String> = title.map(|t| language.stems(t)).unwrap_or_default();
    let least = if body.len() > 30 { 3.0 } else { 2.0 };
    let weigh = |stem: &str, count: f32| {
        let titled = if title.iter().any(|t| t == stem) { 1.6 } else { 1.0 };
        count.sqrt() * titled
    };
    let mut terms: Vec<Term> = words
        .iter()
        .filter(|(stem, tally)| {
            tally.sentences >= least && stem.chars().count() > 2 || title.iter().any(|t| t == *stem)
        })
        .map(|(stem, tally)| Term {
            stem: (*stem).to_owned(),
            word: common_form(&tally.forms),
            weight: weigh(stem, tally.sentences),
        })
        .collect();
    terms.extend(pairs.iter().filter(|(_, (count, ..))| *count >= least).map(|((a, b), (count, x, y))| Term {
        stem: format!("{a} {b}"),
        word: format!("{x} {y}"),
        weight: 1.25 * weigh(a, *count).max(weigh(b, *count)),
    }));
    terms.sort_by(|a, b| b.weight.total_cmp(&a.weight).then_with(|| a.stem.cmp(&b.stem)));
    terms.truncate(TERMS_MAX);
    terms
}

fn common_form(forms: &HashMap<&str, usize>) -> String {
    let best =
        forms.iter().max_by(|a, b| a.1.cmp(b.1).then_with(|| b.0.len().cmp(&a.0.len())).then_with(|| b.0.cmp(a.0)));
    best.map(|(form, _)| (*form).to_owned()).unwrap_or_default()
}
