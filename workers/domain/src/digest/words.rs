//! Words: tokens, function words by language, and stems just strong enough to match plurals and
//! verb forms. Scripts without spaces are cut into pairs of characters.

use std::collections::HashSet;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

const ENGLISH: &str = "a about above after again against all almost along already also although always am among an \
and another any anything are aren't around as at away back be became because become becomes been before being below \
between both but by came can can't cannot could couldn't did didn't do does doesn't doing don't done down during each \
either else enough etc even ever every everything few first following for from further generally get gets getting \
give given gives go goes going got had has have haven't having he her here hers herself him himself his how however \
i i'd i'll i'm i've if in indeed instead into is isn't it it's its itself just keep kind know last later least less \
let let's like likely lot made mainly make makes making many may maybe me might more moreover most mostly much must my \
myself need needs neither never new next no non none nor not nothing now of off often on once one only onto or other \
others otherwise our ours out over own particular particularly per perhaps please possible put quite rather really \
same say says second see seen several shall she should shouldn't show shown shows similarly simply since so some \
something sometimes still such sure take taken takes than that that's the their theirs them themselves then there \
there's therefore these they they're thing things this those though three through thus to together too toward two \
under unless until up upon us use used useful user uses using usually various very via want wants was wasn't way ways \
we we'd we'll we're we've well went were weren't what what's whatever when where whether which while who whole whom \
whose why will with within without won't work works would wouldn't yes yet you you'd you'll you're you've your yours \
yourself able actually allow allows example examples e.g i.e note noted means mean called call different simple";
const GERMAN: &str = "aber alle allem allen aller alles als also am an andere anderen auch auf aus bei beim bereits \
bin bis bist da dabei dadurch dafür damit dann daran darauf daraus darf das dass davon dazu dem den denn der des \
deshalb die dies diese diesem diesen dieser dieses doch dort du durch ein eine einem einen einer eines einige er es \
etwa etwas euch für ganz gegen gibt hab habe haben hat hatte hier hin ich ihm ihn ihnen ihr ihre ihrem ihren im immer \
in ins ist ja je jede jedem jeden jeder jedes jedoch kann kein keine können könnte mal man mehr mein mit muss müssen \
nach nicht nichts noch nun nur ob oder ohne sehr sein seine seinem seinen seiner seit sich sie sind so solche soll \
sollte sondern sowie über um und uns unser unter viel vom von vor während war waren warum was weil welche wenn wer \
werden wie wieder will wir wird wo wurde wurden zu zum zur zwar zwischen";
const FRENCH: &str = "à afin ai ainsi alors après au aucun aussi autre autres aux avant avec avoir bien c'est car ce \
cela celle celui ces cet cette ceux chaque chez comme comment d'un d'une dans de depuis des deux doit donc dont du elle \
elles en encore entre est et être eu fait faire font il ils j'ai je jusqu l'on la le les leur leurs lors lorsque lui \
mais même mes moins mon n'est ne nos notre nous on ont ou où par parce pas peu peut peuvent plus pour pourquoi puis \
qu'il que quel quelle quelles quels qui s'il sa sans se sera ses si son sont sous sur ta te tes toujours tous tout \
toute toutes très trop tu un une vers voici vos votre vous y";
const SPANISH: &str = "a al algo algunos ante antes aquí así aún aunque cada como con contra cual cuando de del desde \
donde dos durante e el él ella ellas ellos en entre era es esa ese eso esta está están estas este esto estos fue ha \
hace hacer han hasta hay la las le les lo los más me mi mientras mucho muy ni no nos o otra otros para pero poco por \
porque puede pueden que qué quien se según ser si sí sido sin sobre son su sus también tan tanto te tiene tienen toda \
todas todo todos tu un una uno unos usted y ya yo";

/// The language whose function words are left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Language {
    #[default]
    English,
    German,
    French,
    Spanish,
}

impl Language {
    const ALL: [Language; 4] = [Self::English, Self::German, Self::French, Self::Spanish];

    /// The one with most function words in a sample of the texts.
    pub fn of<'a>(texts: impl Iterator<Item = &'a str>) -> Self {
        let mut hits = [0usize; 4];
        for text in texts.take(200) {
            for token in tokens(text) {
                for (language, hits) in Self::ALL.iter().zip(hits.iter_mut()) {
                    *hits += usize::from(language.function_words().contains(token.as_str()));
                }
            }
        }
        // English wins a draw: it comes first.
        let best = (0..hits.len()).rev().max_by_key(|&at| hits[at]).unwrap_or(0);
        Self::ALL[best]
    }

    fn function_words(self) -> &'static HashSet<&'static str> {
        static SETS: OnceLock<[HashSet<&'static str>; 4]> = OnceLock::new();
        let sets =
            SETS.get_or_init(|| [ENGLISH, GERMAN, FRENCH, SPANISH].map(|list| list.split_whitespace().collect()));
        &sets[self as usize]
    }

    /// Stems of the words that carry meaning, in order.
    pub fn stems(self, text: &str) -> Vec<String> {
        self.content(text).into_iter().map(|word| word.stem).collect()
    }

    /// The words that carry meaning, in order.
    pub fn content(self, text: &str) -> Vec<Word> {
        let stop = self.function_words();
        let mut content = Vec::new();
        let mut last = None;
        for (at, token) in cased_tokens(text).into_iter().enumerate() {
            let lower = token.text.to_lowercase();
            let meaningful = lower.chars().nth(1).is_some()
                && lower.chars().any(char::is_alphabetic)
                && !stop.contains(lower.as_str());
            if meaningful {
                // A capital that only opens the text is no part of the word.
                let opens = at == 0 && !token.text.chars().skip(1).any(char::is_uppercase);
                let joined = token.joined && at > 0 && last == Some(at - 1);
                last = Some(at);
                content.push(Word { stem: self.stem(&lower), text: if opens { lower } else { token.text }, joined });
            }
        }
        content
    }

    /// Share of the words (in lower case) that are function words; prose has a third and more.
    pub fn function_share(self, tokens: &[String]) -> f32 {
        let stop = self.function_words();
        let hits = tokens.iter().filter(|token| stop.contains(token.as_str())).count();
        hits as f32 / tokens.len().max(1) as f32
    }

    fn stem(self, word: &str) -> String {
        match self {
            Self::English => english_stem(word),
            _ => plain_stem(word),
        }
    }
}

/// A word that carries meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    pub stem: String,
    /// As it is written.
    pub text: String,
    /// Nothing but a space stands between it and the meaningful word before.
    pub joined: bool,
}

struct Token {
    text: String,
    joined: bool,
}

/// Words in lower case. Letters, digits and inner `_` `'` belong to a word.
pub fn tokens(text: &str) -> Vec<String> {
    cased_tokens(text).into_iter().map(|token| token.text.to_lowercase()).collect()
}

/// Words as they are written. Web addresses are no words.
fn cased_tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    // Whether the last character was part of a word, or the space after one.
    let mut open = false;
    for part in text.split_whitespace() {
        if part.contains("://") {
            open = false;
            continue;
        }
        let mut word = String::new();
        let mut chars = part.chars().peekable();
        while let Some(c) = chars.next() {
            if is_unspaced(c) {
                flush(&mut word, open, &mut tokens);
                if let Some(&next) = chars.peek().filter(|next| is_unspaced(**next)) {
                    tokens.push(Token { text: [c, next].iter().collect(), joined: false });
                }
                open = false;
            } else if c.is_alphanumeric() {
                word.push(c);
            } else if inner(c) && !word.is_empty() && chars.peek().is_some_and(|next| next.is_alphanumeric()) {
                word.push(if c == '’' { '\'' } else { c });
            } else {
                flush(&mut word, open, &mut tokens);
                open = false;
            }
        }
        if !word.is_empty() {
            flush(&mut word, open, &mut tokens);
            open = true;
        }
    }
    tokens
}

fn inner(c: char) -> bool {
    matches!(c, '_' | '\'' | '’')
}

fn flush(word: &mut String, joined: bool, tokens: &mut Vec<Token>) {
    if word.is_empty() {
        return;
    }
    let end = word.strip_suffix("'s").map_or(word.len(), str::len);
    word.truncate(end);
    tokens.push(Token { text: std::mem::take(word), joined });
}

/// Han, kana, Thai and the like: written without spaces between words.
pub fn is_unspaced(c: char) -> bool {
    matches!(c as u32, 0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x3040..=0x30FF | 0x3400..=0x4DBF
        | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0x20000..=0x3FFFF)
}

/// Takes plural, past and progressive endings off; keeps short words and identifiers.
fn english_stem(word: &str) -> String {
    let short = |stem: &str| stem.chars().count() < 3;
    let has_vowel = |stem: &str| stem.chars().any(|c| "aeiouy".contains(c));
    if word.contains('_') || !word.is_ascii() {
        return word.to_owned();
    }
    let mut stem = word;
    if let Some(rest) = word.strip_suffix("ies").filter(|rest| !short(rest)) {
        return format!("{rest}y");
    }
    if let Some(rest) = word.strip_suffix("sses") {
        return format!("{rest}ss");
    }
    let kept = ["ss", "us", "is"].iter().any(|end| word.ends_with(end));
    if let Some(rest) = word.strip_suffix('s').filter(|rest| !kept && !short(rest)) {
        stem = rest;
    }
    for ending in ["ingly", "edly", "ing", "ed"] {
        if let Some(rest) = stem.strip_suffix(ending).filter(|rest| !short(rest) && has_vowel(rest)) {
            let bytes = rest.as_bytes();
            let doubled = bytes.len() > 3
                && bytes[bytes.len() - 1] == bytes[bytes.len() - 2]
                && !b"lsz".contains(&bytes[bytes.len() - 1]);
            let rest = if doubled { &rest[..rest.len() - 1] } else { rest };
            return rest.strip_suffix('e').unwrap_or(rest).to_owned();
        }
    }
    stem.strip_suffix('e').filter(|rest| !short(rest)).unwrap_or(stem).to_owned()
}

/// Other languages: long words lose their last letters, which is where they are inflected.
fn plain_stem(word: &str) -> String {
    let length = word.chars().count();
    let keep = if length > 7 { length - 2 } else { length };
    word.chars().take(keep).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_meet() {
        for forms in [
            &["borrow", "borrows", "borrowed", "borrowing"][..],
            &["run", "runs", "running"],
            &["query", "queries"],
            &["close", "closes", "closed", "closing"],
            &["class", "classes"],
        ] {
            let stems: HashSet<String> = forms.iter().map(|form| english_stem(form)).collect();
            assert_eq!(stems.len(), 1, "{forms:?}: {stems:?}");
        }
        assert_eq!(english_stem("as_strings"), "as_strings");
        assert_eq!(english_stem("this"), "this");
    }

    #[test]
    fn tokens_keep_identifiers_and_drop_possessives() {
        assert_eq!(tokens("The crate's as_str() — don’t!"), ["the", "crate", "as_str", "don't"]);
        assert_eq!(tokens("日本語 text"), ["日本", "本語", "text"]);
    }

    #[test]
    fn pairs_are_joined_by_a_space_alone() {
        let joined: Vec<bool> = Language::English
            .content("Page cache, journal of the (hot) index file")
            .into_iter()
            .map(|w| w.joined)
            .collect();
        assert_eq!(joined, [false, true, false, false, false, true]);
    }

    #[test]
    fn the_language_is_found() {
        assert_eq!(Language::of(["Der Hund ist auf dem Dach und schläft"].into_iter()), Language::German);
        assert_eq!(Language::of(["The dog is on the roof"].into_iter()), Language::English);
        assert_eq!(Language::of(["Le chien est sur le toit et il dort"].into_iter()), Language::French);
        assert_eq!(Language::of([].into_iter()), Language::English);
    }
}
