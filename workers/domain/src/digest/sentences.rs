//! Splits running text into sentences: abbreviations, initials, versions, quotes, brackets and
//! code spans do not end one; scripts with full-width stops need no space.

use super::words::is_unspaced;

/// Words that carry a stop and do not end a sentence, in lower case without the stop.
const ABBREVIATIONS: &[&str] = &[
    "e.g", "eg", "i.e", "ie", "cf", "vs", "resp", "incl", "excl", "approx", "ca", "viz", "mr", "mrs", "ms", "dr",
    "prof", "st", "fig", "figs", "eq", "eqs", "sec", "sect", "ch", "vol", "vols", "pp", "ed", "eds", "dept", "est",
    "gen", "gov", "hon", "rev", "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec",
    "z.b", "bzw", "d.h", "u.a", "vgl", "ggf", "nr", "bspw", "p.ex", "c.-à-d", "p.ej", "al", "a.k.a", "w.r.t",
];
/// Abbreviations that do end a sentence when a capital follows.
const MAY_END: &[&str] = &["etc", "inc", "ltd", "co", "corp", "jr", "sr", "p.m", "a.m", "no", "u.s", "u.s.a", "u.k"];
/// How far ahead the end of a bracket is looked for.
const BRACKET_CHARS_MAX: usize = 300;

/// The sentences of one paragraph, trimmed, none empty.
pub fn split(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let (mut from, mut depth, mut in_code) = (0, 0usize, false);
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '`' => in_code = !in_code && text[at + 1..].contains('`'),
            _ if in_code => {}
            '(' | '[' if closes_soon(&text[at + 1..], c) => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            '.' | '!' | '?' | '…' if depth == 0 => {
                let mut end = at + c.len_utf8();
                while let Some(&(next_at, next)) = chars.peek() {
                    if !(is_closer(next) || matches!(next, '.' | '!' | '?')) {
                        break;
                    }
                    end = next_at + next.len_utf8();
                    chars.next();
                }
                if starts_next(&text[end..]) && !(c == '.' && is_abbreviation(&text[from..at], &text[end..])) {
                    push(&text[from..end], &mut sentences);
                    from = end;
                }
            }
            '。' | '！' | '？' => {
                let mut end = at + c.len_utf8();
                while let Some((next_at, next)) = chars.next_if(|(_, next)| is_closer(*next)) {
                    end = next_at + next.len_utf8();
                }
                push(&text[from..end], &mut sentences);
                from = end;
            }
            _ => {}
        }
    }
    push(&text[from..], &mut sentences);
    sentences
}

/// Whether a text has the mark of a finished sentence.
pub fn ends(text: &str) -> bool {
    text.trim_end_matches(is_closer).ends_with(['.', '!', '?', '…', '。', '！', '？'])
}

fn push<'a>(text: &'a str, sentences: &mut Vec<&'a str>) {
    let text = text.trim();
    if !text.is_empty() {
        sentences.push(text);
    }
}

fn is_closer(c: char) -> bool {
    matches!(c, '"' | '\'' | ')' | ']' | '”' | '’' | '»' | '`' | '*' | '_' | '」' | '』' | '）')
}

fn closes_soon(rest: &str, open: char) -> bool {
    let close = if open == '(' { ')' } else { ']' };
    rest.chars().take(BRACKET_CHARS_MAX).any(|c| c == close)
}

/// A sentence may start here: after white space comes a capital, a digit, an opening mark or a
/// letter of a script without capitals. At the end of the text there is nothing to split.
fn starts_next(rest: &str) -> bool {
    let mut chars = rest.chars();
    if !chars.next().is_some_and(char::is_whitespace) {
        return false;
    }
    let Some(first) = chars.find(|c| !c.is_whitespace()) else { return false };
    first.is_uppercase()
        || first.is_numeric()
        || matches!(first, '"' | '“' | '‘' | '«' | '(' | '[' | '`' | '¿' | '¡' | '*' | '_' | '\'')
        || is_unspaced(first)
        || (first.is_alphabetic() && !first.is_lowercase())
}

fn is_abbreviation(before: &str, after: &str) -> bool {
    let word = before.rsplit(|c: char| c.is_whitespace() || matches!(c, '(' | '[' | '"' | '“')).next().unwrap_or("");
    let bare = word.trim_start_matches(['*', '_', '`']).to_lowercase();
    let first_word = before.trim_start().len() == word.len();
    if bare.chars().all(|c| c.is_ascii_digit()) && (first_word || bare.is_empty()) {
        return true; // "1. Open the file."
    }
    let mut letters = bare.chars();
    let initial = letters.next().is_some_and(char::is_alphabetic) && letters.next().is_none();
    if initial && word.chars().all(char::is_uppercase) && word != "I" {
        return true; // "J. Smith"
    }
    if MAY_END.contains(&bare.as_str()) {
        return !after.trim_start().starts_with(char::is_uppercase);
    }
    ABBREVIATIONS.contains(&bare.as_str())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn splits_where_a_reader_would() {
        let cases: &[(&str, &[&str])] = &[
            ("One. Two! Three?", &["One.", "Two!", "Three?"]),
            ("Use a tool, e.g. Make. It works.", &["Use a tool, e.g. Make.", "It works."]),
            ("Dr. J. Smith wrote it. Good.", &["Dr. J. Smith wrote it.", "Good."]),
            ("Version 1.2.3 of Node.js is out. Get it.", &["Version 1.2.3 of Node.js is out.", "Get it."]),
            ("He said \"Stop.\" Then he left.", &["He said \"Stop.\"", "Then he left."]),
            ("It grows (see Fig. 2. It is big) fast. Yes.", &["It grows (see Fig. 2. It is big) fast.", "Yes."]),
            ("Call `a. B` now. Done.", &["Call `a. B` now.", "Done."]),
            ("Wait... What? No.", &["Wait...", "What?", "No."]),
            (
                "Cats, dogs, etc. are pets. Cats, etc. Dogs too.",
                &["Cats, dogs, etc. are pets.", "Cats, etc.", "Dogs too."],
            ),
            ("1. Open the file. 2. Close it.", &["1. Open the file.", "2. Close it."]),
            ("これは文です。次の文です！", &["これは文です。", "次の文です！"]),
            ("Ünlü şehir. Über alles. Ço.", &["Ünlü şehir.", "Über alles.", "Ço."]),
            ("no stop at all", &["no stop at all"]),
            ("", &[]),
        ];
        for (text, expected) in cases {
            assert_eq!(&split(text), expected, "{text}");
        }
    }

    #[test]
    fn finished_sentences_are_known() {
        assert!(ends("So.") && ends("\"So.\"") && ends("(So!)") && ends("そう。"));
        assert!(!ends("So") && !ends("So:") && !ends("") && !ends("`a.b`"));
    }

    proptest! {
        #[test]
        fn nothing_but_space_is_lost(text in "[a-zA-Z.!?()\\[\\]`\" é。]{0,120}") {
            let without_space = |s: &str| s.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            prop_assert_eq!(without_space(&split(&text).concat()), without_space(&text));
        }
    }
}
