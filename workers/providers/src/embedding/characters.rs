//! What the tokenizer knows of characters: which are left out, which stand alone, and what is left of
//! a letter without its marks.

use std::collections::HashMap;

/// First and last code point, both included.
type Ranges = Vec<(u32, u32)>;

#[derive(Debug, Default)]
pub struct Characters {
    marks: Ranges,
    formats: Ranges,
    punctuation: Ranges,
    folds: HashMap<char, char>,
}

impl Characters {
    /// Reads the file that comes with the model.
    ///
    /// # Errors
    /// The first line that means nothing.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut characters = Self::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (what, rest) = line.split_once(' ').unwrap_or((line, ""));
            let known = match what {
                "mark" => add_ranges(&mut characters.marks, rest),
                "format" => add_ranges(&mut characters.formats, rest),
                "punctuation" => add_ranges(&mut characters.punctuation, rest),
                "fold" => add_folds(&mut characters.folds, rest),
                _ => None,
            };
            known.ok_or_else(|| format!("the line {line:?} means nothing"))?;
        }
        Ok(characters)
    }

    /// Neither a character nor white space: as if it were not there.
    pub fn is_nothing(&self, c: char) -> bool {
        if c.is_ascii() {
            return c.is_ascii_control() && !c.is_ascii_whitespace();
        }
        c == '\u{FFFD}' || c.is_control() || has(&self.formats, c)
    }

    /// A word by itself.
    pub fn is_punctuation(&self, c: char) -> bool {
        if c.is_ascii() { c.is_ascii_punctuation() } else { has(&self.punctuation, c) }
    }

    /// Calls back with what is left of a lower-case character without its marks.
    pub fn fold(&self, c: char, tell: &mut impl FnMut(char)) {
        if c.is_ascii() {
            tell(c);
        } else if let Some(jamo) = jamo(c) {
            jamo.into_iter().flatten().for_each(tell);
        } else if !has(&self.marks, c) {
            tell(self.folds.get(&c).copied().unwrap_or(c));
        }
    }
}

/// Chinese characters, of which the vocabulary has each alone.
pub fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{2A6DF}' | '\u{2A700}'..='\u{2CEAF}' | '\u{2F800}'..='\u{2FA1F}')
}

/// The letters of a Korean syllable (Unicode, 3.12), as the vocabulary has them.
fn jamo(c: char) -> Option<[Option<char>; 3]> {
    let index = u32::from(c).checked_sub(0xAC00).filter(|index| *index < 11_172)?;
    let (leading, vowel, trailing) = (index / 588, index % 588 / 28, index % 28);
    let trailing = (trailing > 0).then(|| char::from_u32(0x11A7 + trailing)).flatten();
    Some([char::from_u32(0x1100 + leading), char::from_u32(0x1161 + vowel), trailing])
}

fn has(ranges: &Ranges, c: char) -> bool {
    let code = u32::from(c);
    let after = ranges.partition_point(|(first, _)| *first <= code);
    after > 0 && code <= ranges[after - 1].1
}

fn add_ranges(ranges: &mut Ranges, text: &str) -> Option<()> {
    for word in text.split(' ') {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        let range = (u32::from_str_radix(first, 16).ok()?, u32::from_str_radix(last, 16).ok()?);
        // They are looked up by bisection.
        let in_order = range.0 <= range.1 && ranges.last().is_none_or(|before| before.1 < range.0);
        in_order.then(|| ranges.push(range))?;
    }
    Some(())
}

fn add_folds(folds: &mut HashMap<char, char>, text: &str) -> Option<()> {
    let (to, from) = text.split_once(' ')?;
    let mut to = to.chars();
    let (to, None) = (to.next()?, to.next()) else { return None };
    folds.extend(from.chars().map(|c| (c, to)));
    Some(())
}
