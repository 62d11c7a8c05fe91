//! Which sentences may stand in a digest, and how well each stands alone.

use std::sync::Arc;

use super::blocks::{Block, Kind};
use super::words::Language;
use super::{boilerplate, phrases, sentences, words};

/// A sentence of the running text.
#[derive(Debug, Clone)]
pub struct Sentence {
    pub text: String,
    pub words: usize,
    /// Number of its block among the readable ones.
    pub block: usize,
    /// Number within its block.
    pub within: usize,
    /// Heading it stands under, if any.
    pub heading: Option<Arc<str>>,
    /// From 0 (must not be shown) to 1 (reads well on its own).
    pub fitness: f32,
}

/// Sentences that are taken from one text; the rest of a longer text is left unread.
pub const SENTENCES_MAX: usize = 6_000;
/// Longer ones are no sentences but lists, code or data.
const SENTENCE_CHARS_MAX: usize = 600;

/// The sentences of all paragraphs and items, with their standing.
pub fn collect(blocks: &[Block], language: Language) -> Vec<Sentence> {
    let mut found: Vec<Sentence> = Vec::new();
    let mut heading: Option<Arc<str>> = None;
    for (at, block) in blocks.iter().enumerate() {
        if matches!(block.kind, Kind::Heading(_)) {
            heading = Some(block.text.as_str().into());
            continue;
        }
        for (within, text) in sentences::split(&block.text).into_iter().enumerate() {
            if found.len() == SENTENCES_MAX {
                return found;
            }
            let tokens = words::tokens(text);
            let words = tokens.len();
            if words > 0 {
                let item = block.kind == Kind::Item;
                let mut fitness = fitness(text, &tokens, item, language);
                if is_name_line(text, heading.as_deref()) {
                    fitness = fitness.max(0.8);
                }
                let heading = heading.clone();
                found.push(Sentence { text: tidy(text), words, block: at, within, heading, fitness });
            }
        }
    }
    found
}

/// "NAME: tool - does this and that", as manuals open.
fn is_name_line(text: &str, heading: Option<&str>) -> bool {
    let named = heading.is_some_and(|heading| heading.eq_ignore_ascii_case("name"));
    named && [" - ", " -- ", " — ", " – "].iter().any(|dash| text.contains(dash))
}

/// Brackets and quotes left open by the cut are not shown.
fn tidy(text: &str) -> String {
    let mut text = text.trim_matches(['*', ' ']).to_owned();
    if text.starts_with('(') && text.ends_with(')') && text.matches('(').count() == 1 {
        text = text[1..text.len() - 1].to_owned();
    }
    if text.matches('"').count() == 1 {
        text = text.replace('"', "");
    }
    text
}

fn fitness(text: &str, tokens: &[String], item: bool, language: Language) -> f32 {
    let words = tokens.len();
    if unfit(text, words) {
        return 0.0;
    }
    let lower = text.to_lowercase();
    let mut fitness = length_factor(words);
    if item {
        fitness *= 0.8;
    }
    if !sentences::ends(text) {
        fitness *= if item && words >= 6 { 0.7 } else { 0.25 };
    }
    if text.ends_with('?') {
        fitness *= 0.35;
    }
    if text.contains('!') {
        fitness *= 0.8;
    }
    fitness *= phrases::opening(&lower) * phrases::matter(&lower) * prose_factor(text, tokens, language);
    if text.starts_with(char::is_lowercase) {
        fitness *= if item { 0.6 } else { 0.35 };
    }
    let spans = text.matches('`').count() / 2;
    if spans > 2 {
        fitness *= 0.75;
    }
    let commas = text.matches([',', ';']).count();
    if commas > 6 {
        fitness *= 0.6;
    }
    fitness
}

/// A sentence that ends with these has lost its end: a link, a list, a piece of code.
const CUT_WORDS: &[&str] =
    &["at", "in", "on", "to", "from", "with", "of", "and", "or", "the", "a", "an", "by", "see", "is", "as"];

/// Hard reasons: too short or long, too few letters, data, notices, unbalanced code.
fn unfit(text: &str, words: usize) -> bool {
    let chars = text.chars().count();
    if words < 4 && !text.chars().any(words::is_unspaced) || chars > SENTENCE_CHARS_MAX {
        return true;
    }
    let (mut letters, mut digits, mut marks, mut capitals) = (0usize, 0usize, 0usize, 0usize);
    for c in text.chars().filter(|c| !c.is_whitespace()) {
        letters += usize::from(c.is_alphabetic());
        capitals += usize::from(c.is_uppercase());
        digits += usize::from(c.is_numeric());
        marks += usize::from(matches!(
            c,
            '=' | '{' | '}' | '<' | '>' | '|' | '$' | '@' | '\\' | '~' | '^' | '#' | ';' | '_'
        ));
    }
    let total = letters + digits + marks;
    let few_letters = 10 * letters < 7 * total;
    let shouted = letters > 20 && 2 * capitals > letters;
    let address = text.contains("://") && words < 14;
    let odd_ticks = text.matches('`').count() % 2 == 1;
    let open = text.matches('(').count() != text.matches(')').count();
    let code = ["();", " => ", "::{", "&&", "};", " == "].iter().any(|mark| text.contains(mark)) && !text.contains('`');
    let last = text.trim_end_matches(['.', '!', '?', ' ']).rsplit(' ').next().unwrap_or("");
    let cut = CUT_WORDS.contains(&last) || text.ends_with(':');
    cut || few_letters
        || shouted
        || address
        || odd_ticks
        || open
        || code
        || marks * 8 > total
        || boilerplate::is_notice(text)
}

/// Lists of names and numbers have no verbs and few function words; prose has many.
fn prose_factor(text: &str, tokens: &[String], language: Language) -> f32 {
    if text.chars().any(words::is_unspaced) {
        return 1.0;
    }
    let share = language.function_share(tokens);
    let mut factor = match share {
        s if s < 0.12 => 0.25,
        s if s < 0.2 => 0.55,
        s if s < 0.25 => 0.8,
        _ => 1.0,
    };
    let numbers = text.split_whitespace().filter(|word| word.contains(|c: char| c.is_ascii_digit())).count();
    if 6 * numbers > tokens.len() {
        factor *= 0.5;
    }
    if text.contains("://") || text.contains('@') {
        factor *= 0.5;
    }
    factor
}

/// Twelve to thirty words read best.
fn length_factor(words: usize) -> f32 {
    match words {
        0..=5 => 0.3,
        6..=8 => 0.7,
        9..=11 => 0.85,
        12..=30 => 1.0,
        31..=40 => 0.75,
        41..=55 => 0.45,
        _ => 0.2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> f32 {
        fitness(text, &words::tokens(text), false, Language::English)
    }

    #[test]
    fn a_statement_beats_a_leaning_sentence() {
        let statement = of("Ownership is the set of rules by which the compiler manages the memory of a program.");
        assert!(statement > 0.9);
        for weak in [
            "It is the set of rules by which the compiler manages the memory of a program.",
            "However, the set of rules by which the compiler manages the memory is long.",
            "What is the set of rules by which the compiler manages the memory of a program?",
            "Let's look at the set of rules by which the compiler manages the memory now.",
            "The listing below shows the rules by which the compiler manages the memory of it.",
            "The set of rules by which the compiler manages the memory of a program:",
        ] {
            assert!(of(weak) < 0.7 * statement, "{weak}");
        }
    }

    #[test]
    fn data_and_notices_are_unfit() {
        for unfit in [
            "Yes.",
            "x = 1; y = 2; z[3] = {a: b, c: d};",
            "ALL OF THIS IS SHOUTED AT THE READER OF THE TEXT.",
            "Copyright (c) 2020 by the people who wrote it.",
            "1.2 3.4 5.6 7.8 9.0 1.2 seconds each.",
            "It says `open and never closes the span.",
        ] {
            assert_eq!(of(unfit), 0.0, "{unfit}");
        }
        assert!(of("これは日本語で書かれた文書の要約に使う文です。") > 0.0);
    }
}
