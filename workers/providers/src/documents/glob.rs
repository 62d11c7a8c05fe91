//! Patterns for names: `*`, `**`, `?`, `[a-z]`, `[!a]`, `{a,b}`. Small on purpose: one matcher for
//! paths and for the scripted provider's texts, without regular expressions.

/// Longest pattern and most alternatives, so that matching stays cheap.
const PATTERN_CHARS_MAX: usize = 1_024;
const ALTERNATIVES_MAX: usize = 64;

#[derive(Debug, Clone)]
pub struct Glob {
    alternatives: Vec<Vec<Token>>,
    /// A pattern without a slash is for file names in any folder.
    names_only: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Char(char),
    Any,
    /// Any characters but `/`.
    Star,
    /// Any characters.
    DoubleStar,
    Set {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

impl Glob {
    /// A pattern for paths with `/`, relative to a folder.
    ///
    /// # Errors
    /// What is wrong with the pattern.
    pub fn path(pattern: &str) -> Result<Self, String> {
        let pattern = pattern.trim_start_matches("./").trim_start_matches('/');
        Ok(Self { alternatives: parse(pattern, false)?, names_only: !pattern.contains('/') })
    }

    /// A pattern for a whole text: `*` spans everything.
    ///
    /// # Errors
    /// What is wrong with the pattern.
    pub fn text(pattern: &str) -> Result<Self, String> {
        Ok(Self { alternatives: parse(pattern, true)?, names_only: false })
    }

    pub fn matches(&self, text: &str) -> bool {
        let text = if self.names_only { text.rsplit('/').next().unwrap_or(text) } else { text };
        let text: Vec<char> = text.chars().collect();
        self.alternatives.iter().any(|tokens| matches(tokens, &text))
    }
}

fn parse(pattern: &str, text: bool) -> Result<Vec<Vec<Token>>, String> {
    if pattern.chars().count() > PATTERN_CHARS_MAX {
        return Err(format!("a pattern has at most {PATTERN_CHARS_MAX} characters"));
    }
    expand(pattern)?.iter().map(|alternative| tokens(alternative, text)).collect()
}

/// Writes `{a,b}` out, from the innermost pair outward.
fn expand(pattern: &str) -> Result<Vec<String>, String> {
    let mut done = Vec::new();
    let mut open = vec![pattern.to_owned()];
    while let Some(next) = open.pop() {
        let Some(to) = next.find('}') else {
            if next.contains('{') {
                return Err(format!("{pattern:?}: {{ is never closed"));
            }
            done.push(next);
            continue;
        };
        let Some(from) = next[..to].rfind('{') else {
            return Err(format!("{pattern:?}: }} was never opened"));
        };
        for part in next[from + 1..to].split(',') {
            open.push(format!("{}{part}{}", &next[..from], &next[to + 1..]));
        }
        if done.len() + open.len() > ALTERNATIVES_MAX {
            return Err(format!("{pattern:?}: more than {ALTERNATIVES_MAX} alternatives"));
        }
    }
    Ok(done)
}

fn tokens(pattern: &str, text: bool) -> Result<Vec<Token>, String> {
    let chars: Vec<char> = pattern.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let token = match chars[at] {
            '*' => {
                let double = chars.get(at + 1) == Some(&'*');
                at += usize::from(double);
                // "a/**/b" is also "a/b".
                if double && chars.get(at + 1) == Some(&'/') && (at < 2 || chars[at - 2] == '/') {
                    at += 1;
                }
                if double || text { Token::DoubleStar } else { Token::Star }
            }
            '?' => Token::Any,
            '[' => {
                let (token, end) = set(&chars, at).ok_or_else(|| format!("{pattern:?}: [ is never closed"))?;
                at = end;
                token
            }
            c => Token::Char(c),
        };
        tokens.push(token);
        at += 1;
    }
    tokens.dedup_by(|a, b| matches!((a, b), (Token::Star | Token::DoubleStar, Token::DoubleStar)));
    Ok(tokens)
}

fn set(chars: &[char], at: usize) -> Option<(Token, usize)> {
    let negated = matches!(chars.get(at + 1), Some('!' | '^'));
    let from = at + 1 + usize::from(negated);
    // A bracket that comes first is a member.
    let end = (from + 1..chars.len()).find(|end| chars[*end] == ']')?;
    let mut ranges = Vec::new();
    let mut inner = from;
    while inner < end {
        if inner + 2 < end && chars[inner + 1] == '-' {
            ranges.push((chars[inner], chars[inner + 2]));
            inner += 3;
        } else {
            ranges.push((chars[inner], chars[inner]));
            inner += 1;
        }
    }
    Some((Token::Set { negated, ranges }, end))
}

/// One pass over the text per token: which prefixes of the text the tokens so far can match.
fn matches(tokens: &[Token], text: &[char]) -> bool {
    let mut reached = vec![false; text.len() + 1];
    reached[0] = true;
    for token in tokens {
        let mut next = vec![false; text.len() + 1];
        match token {
            Token::Star | Token::DoubleStar => {
                let mut open = false;
                for (at, from) in reached.iter().enumerate() {
                    open |= *from;
                    next[at] = open;
                    open &= *token == Token::DoubleStar || text.get(at) != Some(&'/');
                }
            }
            one => {
                for (at, c) in text.iter().enumerate() {
                    next[at + 1] = reached[at] && fits(one, *c);
                }
            }
        }
        reached = next;
    }
    reached[text.len()]
}

fn fits(token: &Token, c: char) -> bool {
    match token {
        Token::Char(own) => *own == c,
        Token::Any => c != '/',
        Token::Set { negated, ranges } => ranges.iter().any(|(from, to)| (*from..=*to).contains(&c)) != *negated,
        Token::Star | Token::DoubleStar => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn path(pattern: &str, path: &str) -> bool {
        Glob::path(pattern).expect("a pattern").matches(path)
    }

    #[test]
    fn paths_match_as_in_a_shell() {
        for (pattern, yes, no) in [
            ("*.md", "a/b/c.md", "a/b.md/c.txt"),
            ("docs/*.md", "docs/a.md", "docs/x/a.md"),
            ("docs/**/*.md", "docs/x/y/a.md", "other/a.md"),
            ("docs/**/*.md", "docs/a.md", "docs/a.txt"),
            ("**/x/*", "a/b/x/c", "a/b/c"),
            ("**", "a/b/c", "\u{0}never"),
            ("file?.[ch]", "dir/file1.c", "file12.c"),
            ("[!a]*.{md,txt}", "b.txt", "a.md"),
            ("./[]x].md", "].md", "y.md"),
        ] {
            assert!(path(pattern, yes), "{pattern} {yes}");
            assert!(pattern == "**" || !path(pattern, no), "{pattern} {no}");
        }
    }

    #[test]
    fn texts_match_across_slashes() {
        let glob = Glob::text("*joke*about*cats*").expect("a pattern");
        assert!(glob.matches("tell a joke\nabout/wild cats!") && !glob.matches("a joke about dogs"));
    }

    #[test]
    fn broken_patterns_are_explained() {
        for pattern in ["{a", "a}", "[a", &"{a,b}".repeat(10)] {
            assert!(Glob::path(pattern).is_err(), "{pattern}");
        }
    }

    proptest! {
        #[test]
        fn a_text_matches_itself_and_stars(text in "[a-z./ é]{0,20}", cut in 0usize..20) {
            prop_assert!(Glob::text(&text).expect("plain").matches(&text));
            let at = text.char_indices().nth(cut).map_or(text.len(), |(at, _)| at);
            let starred = format!("{}*{}", &text[..at], &text[at..]);
            prop_assert!(Glob::text(&starred).expect("starred").matches(&text));
        }

        #[test]
        fn no_pattern_breaks_it(pattern in "[a*?\\[\\]!{},/-]{0,16}", text in "[a/-]{0,12}") {
            if let Ok(glob) = Glob::path(&pattern) {
                glob.matches(&text);
            }
        }
    }
}
