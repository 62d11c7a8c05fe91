//! Which sentences may stand in a digest, and how well each stands alone.

use std::sync::Arc;

use super::blocks::{Block, Kind};
use super::{boilerplate, sentences, words};

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
pub const SENTENCES_MAX: usize = 20_000;
/// Longer ones are no sentences but lists, code or data.
const SENTENCE_CHARS_MAX: usize = 600;

/// The sentences of all paragraphs and items, with their standing.
pub fn collect(blocks: &[Block]) -> Vec<Sentence> {
    let mut found: Vec<Sentence> = Vec::new();
    let mut heading: Option<Arc<str>> = None;
    for (at, block) in blocks.iter().enumerate() {
        if matches!(block.kind, Kind::Heading(_)) {
            heading = Some(block.text.as_str().into());
            continue;
        }
        for (within, text) in sentences::split(&block.text).into_iter().enumerate() {
            let words = words::tokens(text).len();
            if words > 0 && found.len() < SENTENCES_MAX {
                let item = block.kind == Kind::Item;
                let mut fitness = fitness(text, words, item);
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

fn fitness(text: &str, words: usize, item: bool) -> f32 {
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
    fitness *= start_factor(&lower);
    for phrase in POINTERS {
        if lower.contains(phrase) {
            fitness *= 0.6;
        }
    }
    let spans = text.matches('`').count() / 2;
    if spans > 2 {
        fitness *= 0.75;
    }
    let commas = text.matches([',', ';']).count();
    if commas > 6 {
        fitness *= 0.6;
    }
    fitness * personal_factor(&lower)
}

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
    few_letters || shouted || address || odd_ticks || open || code || marks * 8 > total || boilerplate::is_notice(text)
}

/// Twelve to thirty words read best.
fn length_factor(words: usize) -> f32 {
    match words {
        0..=5 => 0.3,
        6..=8 => 0.6,
        9..=11 => 0.85,
        12..=30 => 1.0,
        31..=40 => 0.75,
        41..=55 => 0.45,
        _ => 0.2,
    }
}

/// Openings that lean on the sentence before, with how much they cost.
const LEANING: &[(&str, f32)] = &[
    ("this is because", 0.3),
    ("this means", 0.4),
    ("this ", 0.55),
    ("these ", 0.5),
    ("those ", 0.4),
    ("that ", 0.4),
    ("it ", 0.4),
    ("its ", 0.4),
    ("it's ", 0.4),
    ("they ", 0.35),
    ("their ", 0.35),
    ("them ", 0.3),
    ("he ", 0.4),
    ("she ", 0.4),
    ("his ", 0.4),
    ("her ", 0.4),
    ("such ", 0.5),
    ("both ", 0.5),
    ("here", 0.4),
    ("there", 0.6),
    ("then", 0.4),
    ("thus", 0.45),
    ("so ", 0.4),
    ("so, ", 0.4),
    ("but ", 0.45),
    ("and ", 0.4),
    ("or ", 0.35),
    ("yet ", 0.45),
    ("nor ", 0.3),
    ("however", 0.45),
    ("therefore", 0.45),
    ("hence", 0.45),
    ("consequently", 0.45),
    ("instead", 0.45),
    ("otherwise", 0.35),
    ("also", 0.45),
    ("additionally", 0.5),
    ("furthermore", 0.5),
    ("moreover", 0.5),
    ("similarly", 0.4),
    ("likewise", 0.4),
    ("nevertheless", 0.45),
    ("on the other hand", 0.35),
    ("in contrast", 0.4),
    ("in this case", 0.3),
    ("in that case", 0.3),
    ("in addition", 0.5),
    ("for example", 0.35),
    ("for instance", 0.35),
    ("e.g.", 0.3),
    ("i.e.", 0.3),
    ("that is", 0.3),
    ("in other words", 0.5),
    ("as a result", 0.45),
    ("as you can see", 0.2),
    ("again", 0.4),
    ("finally", 0.5),
    ("next", 0.4),
    ("first", 0.5),
    ("second", 0.4),
    ("third", 0.4),
    ("now", 0.4),
    ("if so", 0.3),
    ("if not", 0.3),
    ("yes", 0.2),
    ("no,", 0.2),
    ("well,", 0.3),
    ("ok", 0.2),
    ("of course", 0.4),
    ("another ", 0.5),
    ("the former", 0.3),
    ("the latter", 0.3),
    ("the above", 0.3),
    ("the following", 0.3),
    ("the same ", 0.5),
    ("the second", 0.45),
    ("the other", 0.45),
    ("note", 0.7),
    ("remember", 0.5),
    ("see ", 0.2),
    ("dies ", 0.5),
    ("diese", 0.5),
    ("es ", 0.5),
    ("jedoch", 0.45),
    ("cela ", 0.45),
    ("cette ", 0.5),
    ("ce ", 0.5),
    ("esto ", 0.45),
    ("esta ", 0.5),
];

/// "This guide explains …" names its subject; "This breaks it" does not.
const SELF_NAMES: &[&str] = &[
    "document",
    "module",
    "package",
    "library",
    "guide",
    "manual",
    "chapter",
    "tutorial",
    "page",
    "file",
    "program",
    "tool",
    "project",
    "book",
    "article",
    "paper",
    "section",
    "specification",
    "standard",
    "crate",
    "class",
    "pragma",
    "extension",
    "command",
    "report",
    "policy",
];

fn start_factor(lower: &str) -> f32 {
    if let Some(rest) = lower.strip_prefix("this ") {
        let word = rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or("");
        if SELF_NAMES.contains(&word) {
            return 0.95;
        }
    }
    if lower.starts_with(|c: char| !c.is_alphanumeric() && !matches!(c, '`' | '"' | '“' | '«' | '\'')) {
        return 0.5;
    }
    LEANING.iter().find(|(start, _)| lower.starts_with(start)).map_or(1.0, |(_, factor)| *factor)
}

/// Words that point to something the digest does not show.
const POINTERS: &[&str] = &[
    "below",
    "above",
    "following",
    "figure ",
    "fig. ",
    "listing ",
    "table ",
    "see also",
    "see the ",
    "(see ",
    "previous",
    "the last section",
    "next section",
    "next chapter",
    "in this example",
    "this example",
    "our example",
    "as follows",
    "shown here",
    "the example",
    "later in",
    "earlier",
    "we saw",
    "we've seen",
    "we’ve seen",
    "chapter ",
    "section ",
    "appendix ",
    "as mentioned",
    "mentioned",
    "in this case",
    "for more information",
    "for details",
    "for more details",
    "more about",
    "refer to",
    "exercise",
    "right-hand",
    "left-hand side",
    "debian bug",
    "line ",
];

/// Stage directions of tutorials.
fn personal_factor(lower: &str) -> f32 {
    let stage = [
        "let's",
        "let’s",
        "we'll",
        "we’ll",
        "we're going",
        "i'm ",
        "i’m ",
        "i'll",
        "i think",
        "i've",
        "you'll see",
        "you’ll see",
        "you'll learn",
        "you’ll learn",
        "you'll find",
        "you might be",
        "you may have",
        "welcome",
        "thank you",
        "thanks",
        "please ",
        "congratulations",
        "feel free",
        "don't worry",
        "don’t worry",
        "my ",
    ];
    let personal = ["we ", "we've", "we’ve", "our ", "i "];
    let first = |words: &[&str]| words.iter().any(|w| lower.starts_with(w) || lower.contains(&format!(" {w}")));
    if first(&stage) {
        0.45
    } else if first(&personal) {
        0.65
    } else {
        1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> f32 {
        fitness(text, words::tokens(text).len(), false)
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
