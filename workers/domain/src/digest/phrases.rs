//! Phrases by which a sentence leans on its neighbours, points elsewhere or talks to the reader.

/// Openings that lean on the sentence before; the number is what remains of its fitness.
const LEANING: &[(f32, &str)] = &[
    (0.2, "as you can see|yes|ok|see"),
    (
        0.3,
        "this is because|them|nor|in this case|in that case|e.g.|i.e.|that is|if so|if not|no,|well,|the former|the latter|\
         the above|the following",
    ),
    (0.35, "they|their|or|otherwise|on the other hand|for example|for instance"),
    (
        0.4,
        "this means|those|that|it|its|it's|it’s|he|she|his|her|here|then|so|so,|and|similarly|likewise|in contrast|again|next|\
         second|third|now|of course",
    ),
    (
        0.45,
        "thus|but|yet|however|therefore|hence|consequently|instead|also|nevertheless|as a result|the second|the other|jedoch|\
         cela|esto",
    ),
    (
        0.5,
        "these|such|both|additionally|furthermore|moreover|in addition|in other words|finally|first|another|the same|remember|returns|return|used by|used to|same as|like|\
         dies|diese|dieser|dieses|es|cette|ce|esta",
    ),
    (0.55, "this"),
    (0.6, "there|there's|there’s|in fact|in many cases|in most cases"),
    (0.7, "note"),
];

/// "This guide explains …" names its subject; "This breaks it" does not.
const SELF_NAMES: &str = "document|module|package|library|guide|manual|chapter|tutorial|page|file|program|tool|project|\
    book|article|paper|section|specification|standard|crate|class|pragma|extension|command|report|policy";

/// What is meant by these, early in a sentence, stands elsewhere: "If it does, …".
const EARLY: &[&str] = &["it", "they", "these", "this", "those", "them", "he", "she", "its", "their"];

/// Words that point to something the digest does not show.
const POINTERS: &str = "below|above|following|figure|fig.|listing|table|see also|see the|(see|previous|previously|\
    this code|this line|this function|this method|this program|this test|that line|this version|this error|this output|\
    this command|first line|second line|the last section|next section|next chapter|in this example|this example|\
    our example|as follows|shown here|the example|later in|earlier|we saw|we've seen|we’ve seen|chapter|section|appendix|\
    as mentioned|mentioned|in this case|for more information|for details|for more details|more about|refer to|exercise|\
    right-hand|left-hand side|debian bug|at this point|do this|does this|doing this|in this book|this book|this means|as shown|as described|as explained|the code";

/// Stage directions of tutorials.
const STAGE: &str = "let's|let’s|we'll|we’ll|we're going|we’re going|i'm|i’m|i'll|i think|i've|you'll see|you’ll see|\
    you'll learn|you’ll learn|you'll find|you might be|you may have|welcome|thank you|thanks|please|congratulations|\
    feel free|don't worry|don’t worry|you now|you know|you've learned|you’ve learned|you've seen|you’ve seen|my";
const PERSONAL: &str = "we|we've|we’ve|we're|we’re|us|our|i";

/// How well a sentence (in lower case) opens without the one before it, from 0 to 1.
pub fn opening(lower: &str) -> f32 {
    if let Some(rest) = lower.strip_prefix("this ") {
        let word = rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or("");
        if SELF_NAMES.split('|').any(|name| name == word) {
            return 0.95;
        }
    }
    if lower.starts_with(|c: char| !c.is_alphanumeric() && !matches!(c, '`' | '"' | '“' | '«' | '\'')) {
        return 0.5;
    }
    let starts = |phrases: &str| phrases.split('|').any(|phrase| opens_with(lower, phrase));
    let start = LEANING.iter().find(|(_, phrases)| starts(phrases)).map_or(1.0, |(factor, _)| *factor);
    let early = lower.split_whitespace().skip(1).take(3).any(|word| EARLY.contains(&word.trim_end_matches(',')));
    if early { start.min(0.5) } else { start }
}

/// How much a sentence (in lower case) keeps to its matter, from 0 to 1.
pub fn matter(lower: &str) -> f32 {
    let pointers = POINTERS.split('|').filter(|phrase| has(lower, phrase)).count().min(3);
    let talk = if STAGE.split('|').any(|phrase| has(lower, phrase)) {
        0.45
    } else if PERSONAL.split('|').any(|phrase| has(lower, phrase)) {
        0.65
    } else {
        1.0
    };
    talk * 0.6f32.powi(pointers as i32)
}

fn opens_with(text: &str, phrase: &str) -> bool {
    text.strip_prefix(phrase).is_some_and(ends_word)
}

/// Whether a text has a phrase as whole words.
fn has(text: &str, phrase: &str) -> bool {
    text.match_indices(phrase).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric()) && ends_word(&text[at + phrase.len()..])
    })
}

fn ends_word(rest: &str) -> bool {
    !rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '\'' | '’' | '-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_whole_words() {
        assert!(has("as in table 2", "table") && !has("a suitable way", "table") && !has("tables", "table"));
        assert_eq!(opening("itself a thing of beauty"), 1.0);
        assert_eq!(opening("first-class values are"), 1.0);
    }

    #[test]
    fn leaning_openings_cost() {
        assert_eq!(opening("it is so"), 0.4);
        assert_eq!(opening("if it does, add the value"), 0.5);
        assert_eq!(opening("this guide explains locks"), 0.95);
        assert!(opening("this explains locks") < 0.6);
        assert!(matter("we showed that in section 3 above") < 0.3);
    }
}
