//! What a single line is.

/// A line without its indentation, quote marks and comment marks.
pub struct Line<'a> {
    pub text: &'a str,
    pub indent: usize,
}

impl<'a> Line<'a> {
    pub fn new(raw: &'a str) -> Self {
        let text = raw.trim_end();
        let indent = text.chars().take_while(|c| c.is_whitespace()).map(|c| if c == '\t' { 4 } else { 1 }).sum();
        let mut text = text.trim_start();
        while let Some(quoted) = text.strip_prefix('>').filter(|quoted| !quoted.starts_with(['>', '='])) {
            text = quoted.trim_start();
        }
        for mark in ["//!", "///", "//"] {
            if let Some(comment) = text.strip_prefix(mark).filter(|c| c.is_empty() || c.starts_with(' ')) {
                text = comment.trim_start();
                break;
            }
        }
        Self { text, indent }
    }

    /// The mark and length of a code fence.
    pub fn fence(&self) -> Option<(char, usize)> {
        let mark = self.text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let length = self.text.chars().take_while(|c| *c == mark).count();
        let inline = mark == '`' && self.text[length..].contains('`');
        (length >= 3 && !inline).then_some((mark, length))
    }

    pub fn is_pod(&self) -> bool {
        self.indent == 0 && self.text.starts_with('=') && self.text[1..].starts_with(|c: char| c.is_ascii_lowercase())
    }

    /// reStructuredText directives and targets, roff requests, Markdown link definitions.
    pub fn is_directive(&self) -> bool {
        let text = self.text;
        let roff = text.strip_prefix(['.', '\'']).is_some_and(|rest| {
            let name = rest.split(char::is_whitespace).next().unwrap_or("");
            (1..=3).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphabetic())
        });
        let definition = text.starts_with('[') && text.split_once("]:").is_some_and(|(name, _)| name.len() < 80);
        let field = text.starts_with(':')
            && text[1..]
                .split_once(':')
                .is_some_and(|(name, _)| !name.is_empty() && name.len() < 40 && !name.contains('`'))
            && !text.contains(":`");
        let fenced_div = text.starts_with(":::") || text.starts_with("{{") || text.starts_with("{%");
        roff || definition || field || fenced_div || text.starts_with(".. ")
    }

    pub fn atx_heading(&self) -> Option<(u8, &'a str)> {
        let level = self.text.bytes().take_while(|b| *b == b'#').count();
        let heading = self.text[level..].strip_prefix(' ')?;
        ((1..=6).contains(&level) && self.indent < 4).then_some((level as u8, heading))
    }

    /// A short line that stands alone, without a stop, in capitals, title case or numbered.
    pub fn reads_as_heading(&self) -> bool {
        let words: Vec<&str> = self.text.split_whitespace().collect();
        let last = self.text.chars().last().unwrap_or('.');
        if words.len() > 9 || self.text.chars().count() > 70 || matches!(last, '.' | ',' | ';' | '!') {
            return false;
        }
        let lettered: Vec<&&str> = words.iter().filter(|word| word.chars().any(char::is_alphabetic)).collect();
        if lettered.is_empty() || self.text.contains(['=', '{', '}', '$', '|', '\\', '/', '@']) {
            return false;
        }
        let capital = |word: &&str| word.starts_with(char::is_uppercase);
        let numbered = words[0].trim_end_matches('.').chars().all(|c| c.is_ascii_digit() || c == '.');
        let capitals = lettered.iter().copied().filter(|word| capital(word)).count();
        (numbered && lettered[0].starts_with(char::is_uppercase)) || 2 * capitals > lettered.len()
    }
}

/// Text after the mark of a list item: bullet, number or letter.
pub fn item_start(text: &str) -> Option<&str> {
    if let Some(rest) = text.strip_prefix(['-', '*', '+', '•', '·', '–', '◦', 'o']) {
        if let Some(item) = rest.strip_prefix([' ', '\t']) {
            let item = item.trim_start();
            let least = if text.starts_with('o') { 3 } else { 1 };
            return (item.len() >= least).then(|| checkbox(item));
        }
        return None;
    }
    let open = usize::from(text.starts_with('('));
    let mark = text[open..].bytes().take_while(u8::is_ascii_alphanumeric).count();
    let numbered = (1..=3).contains(&mark) && text[open..open + mark].bytes().all(|b| b.is_ascii_digit());
    let lettered = mark == 1 && open == 1;
    let rest = text[open + mark..].strip_prefix(if open == 1 { &[')'][..] } else { &['.', ')'][..] })?;
    let item = rest.strip_prefix([' ', '\t'])?.trim_start();
    ((numbered || lettered) && !item.is_empty()).then_some(item)
}

fn checkbox(item: &str) -> &str {
    ["[ ] ", "[x] ", "[X] "].iter().find_map(|mark| item.strip_prefix(mark)).unwrap_or(item)
}

/// The level of a heading made by underlining.
pub fn underline_level(text: &str, next: &str) -> Option<u8> {
    let next = next.trim();
    let mark = next.chars().next()?;
    let level = match mark {
        '=' | '#' => 1,
        '-' | '*' => 2,
        '~' | '^' | '"' | '+' => 3,
        _ => return None,
    };
    let (width, length) = (text.chars().count(), next.chars().count());
    let fits = length >= 3 && 2 * length >= width && width <= 100;
    (fits && next.chars().all(|c| c == mark) && text.chars().any(char::is_alphanumeric)).then_some(level)
}

/// Nothing but marks.
pub fn is_rule(text: &str) -> bool {
    !text.chars().any(char::is_alphanumeric)
}

/// A row of a table: bars, or columns held apart by spaces, or a line of a contents list.
pub fn is_table(text: &str) -> bool {
    let bars = text.matches(" | ").count() + usize::from(text.starts_with('|')) + usize::from(text.ends_with('|'));
    let columns = text.split("   ").filter(|part| !part.trim().is_empty()).count();
    let leader = text.contains(" . . . ") || text.contains(".....") || text.contains("· · ·");
    bars >= 2 || columns >= 3 || leader || text.matches('\t').count() >= 2
}

/// Whether a line is program text rather than prose.
pub fn is_code(text: &str) -> bool {
    let starts =
        ["$ ", "% ", ">>> ", "... ", "#!", "#include", "import ", "use ", "let ", "fn ", "def ", "my ", "var "];
    if starts.iter().any(|start| text.starts_with(start)) && !text.ends_with(['.', ':', ',']) {
        return true;
    }
    if text.ends_with([';', '{', '}', '\\']) && !text.contains(". ") {
        let words = text.split_whitespace().count();
        if words < 12 || text.contains(['=', '(', '{', '}']) {
            return true;
        }
    }
    let (mut letters, mut marks, mut total) = (0usize, 0usize, 0usize);
    for c in text.chars().filter(|c| !c.is_whitespace()) {
        total += 1;
        letters += usize::from(c.is_alphabetic());
        marks += usize::from(matches!(
            c,
            '=' | '{'
                | '}'
                | '<'
                | '>'
                | '|'
                | '$'
                | '&'
                | '%'
                | '@'
                | '\\'
                | '/'
                | '_'
                | '#'
                | '+'
                | '*'
                | '~'
                | '^'
                | ';'
        ));
    }
    let pairs = ["();", "->", "=>", "::", "==", "!=", "&&", "||", "+="].iter().filter(|p| text.contains(**p)).count();
    2 * letters < total || 7 * marks > total || (pairs >= 2 && !text.contains('`'))
}

/// Several short lines in a row that are no sentences: addresses, menus, option lists, verses of
/// metadata.
pub fn is_list_of_scraps(lines: &[String]) -> bool {
    if lines.len() < 3 {
        return false;
    }
    let short = lines.iter().filter(|line| line.chars().count() < 38).count();
    let stops = lines.iter().filter(|line| line.ends_with(['.', '!', '?', ',', ';'])).count();
    5 * short >= 4 * lines.len() && 3 * stops < lines.len()
}
