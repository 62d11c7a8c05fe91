//! Takes inline markup out of a line of text: Markdown, reStructuredText, POD, HTML. Code spans
//! keep their words.

/// Longest markup construct that is looked for.
const SPAN_BYTES_MAX: usize = 400;

/// Plain text of a marked-up line, with single spaces.
pub fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let used = match c {
            '`' => code_span(rest, &mut out),
            '!' if rest.starts_with("![") => image(rest),
            '[' => link(rest, &mut out),
            '<' => tag(rest, &mut out),
            '*' | '_' => emphasis(rest, &mut out),
            '&' => entity(rest, &mut out),
            '\\' => escape(rest, &mut out),
            ':' => role(rest),
            'A'..='Z' if rest[1..].starts_with('<') => pod(rest, &mut out),
            _ => 0,
        };
        if used > 0 {
            at += used;
            continue;
        }
        at += c.len_utf8();
        if !c.is_control() || c.is_whitespace() {
            out.push(c);
        }
    }
    squeeze(&out)
}

fn squeeze(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        // Marks of heading anchors, soft hyphens and zero-width characters are not for readers.
        let word: String =
            word.chars().filter(|c| !matches!(c, '¶' | '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{feff}')).collect();
        if !word.is_empty() {
            if !out.is_empty() && !matches!(word.as_str(), "." | "," | ";" | ":" | "!" | "?") {
                out.push(' ');
            }
            out.push_str(&word);
        }
    }
    out
}

/// `` `x` `` and ``` ``x`` ``` become `` `x` ``; reStructuredText targets go.
fn code_span(rest: &str, out: &mut String) -> usize {
    let ticks = rest.bytes().take_while(|b| *b == b'`').count();
    let mark = &rest[..ticks];
    let Some(length) = rest[ticks..].find(mark).filter(|length| (1..SPAN_BYTES_MAX).contains(length)) else {
        return ticks;
    };
    let inner = rest[ticks..ticks + length].trim();
    let mut used = ticks + length + ticks;
    let target = inner.find(" <").filter(|_| inner.ends_with('>'));
    let after = &rest[used..];
    if target.is_some() || after.starts_with('_') {
        used += after.bytes().take_while(|b| *b == b'_').count();
        out.push_str(target.map_or(inner, |at| &inner[..at]));
    } else {
        out.push('`');
        out.push_str(inner);
        out.push('`');
    }
    used
}

/// `[words](address)`, `[words][name]` and `[words]` become the words, footnotes go.
fn link(rest: &str, out: &mut String) -> usize {
    let Some(end) = closing(rest, '[', ']') else { return 0 };
    let words = &rest[1..end];
    let after = &rest[end + 1..];
    if words.starts_with('^') {
        return end + 1;
    }
    let target = match after.chars().next() {
        Some('(') => closing(after, '(', ')'),
        Some('[') => closing(after, '[', ']'),
        _ => None,
    };
    match target {
        Some(target) => {
            out.push_str(&clean(words));
            end + 1 + target + 1
        }
        None if words.len() <= 3 && words.chars().all(|c| c.is_ascii_digit()) => end + 1,
        // A shortcut link around code or a name; other brackets are the author's.
        None if words.starts_with('`') && words.ends_with('`') => {
            out.push_str(words);
            end + 1
        }
        None => 0,
    }
}

fn image(rest: &str) -> usize {
    let Some(end) = closing(&rest[1..], '[', ']').map(|end| end + 1) else { return 0 };
    let after = &rest[end + 1..];
    match after.chars().next() {
        Some('(') => closing(after, '(', ')').map_or(0, |close| end + 1 + close + 1),
        Some('[') => closing(after, '[', ']').map_or(0, |close| end + 1 + close + 1),
        _ => 0,
    }
}

/// Byte position of the bracket that closes the one the text starts with.
fn closing(text: &str, open: char, close: char) -> Option<usize> {
    let mut depth = 0usize;
    for (at, c) in text.char_indices().take_while(|(at, _)| *at < SPAN_BYTES_MAX) {
        if c == open {
            depth += 1;
        } else if c == close {
            depth -= 1;
            if depth == 0 {
                return Some(at);
            }
        }
    }
    None
}

/// HTML tags go, the brackets of autolinks go, `Vec<T>` stays.
fn tag(rest: &str, out: &mut String) -> usize {
    let mut chars = rest[1..].chars();
    let first = chars.next();
    let opens = first.is_some_and(|c| c.is_ascii_alphabetic() || c == '/' || c == '!');
    let generic = out.ends_with(|c: char| c.is_alphanumeric() || c == ':') && first.is_some_and(char::is_uppercase);
    if !opens || generic {
        return 0;
    }
    let Some(end) = rest.find('>').filter(|end| *end < SPAN_BYTES_MAX) else { return 0 };
    let name: String = rest[1..end].trim_start_matches('/').chars().take_while(char::is_ascii_alphanumeric).collect();
    if rest[1..end].contains("://") || rest[1..end].contains('@') {
        out.push_str(&rest[1..end]);
        return end + 1;
    }
    let known =
        HTML.contains(&name.to_ascii_lowercase().as_str()) || rest[1..end].contains('=') || rest.starts_with("<!");
    if known { end + 1 } else { 0 }
}

const HTML: &[&str] = &[
    "a",
    "abbr",
    "b",
    "big",
    "blockquote",
    "br",
    "center",
    "cite",
    "code",
    "dd",
    "del",
    "details",
    "dfn",
    "div",
    "dl",
    "dt",
    "em",
    "font",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "i",
    "img",
    "ins",
    "kbd",
    "li",
    "mark",
    "ol",
    "p",
    "picture",
    "pre",
    "q",
    "s",
    "samp",
    "section",
    "small",
    "source",
    "span",
    "strike",
    "strong",
    "sub",
    "summary",
    "sup",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "tt",
    "u",
    "ul",
    "var",
    "video",
    "wbr",
];

/// Stars and underscores around words go; `__init__`, `a_b` and `2 * 3` stay.
fn emphasis(rest: &str, out: &mut String) -> usize {
    let mark = rest.as_bytes()[0];
    let run = rest.bytes().take_while(|b| *b == mark).count();
    let word_before = out.ends_with(|c: char| c.is_alphanumeric() || c == '_');
    let word_after = rest[run..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
    let space_before = out.is_empty() || out.ends_with(char::is_whitespace);
    let space_after = rest[run..].is_empty() || rest[run..].starts_with(char::is_whitespace);
    if run > 3 || (space_before && space_after) {
        return 0;
    }
    if mark == b'*' {
        return run;
    }
    let name = rest[run..].bytes().take_while(|b| b.is_ascii_lowercase() || *b == b'_').count();
    if run == 2 && !word_before && name > 3 && rest[..run + name].ends_with("__") {
        out.push_str(&rest[..run + name]);
        return run + name;
    }
    if word_before && word_after { 0 } else { run }
}

fn entity(rest: &str, out: &mut String) -> usize {
    let Some(end) = rest.find(';').filter(|end| (2..=10).contains(end)) else { return 0 };
    let name = &rest[1..end];
    let decoded = match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        "nbsp" => Some(' '),
        "mdash" => Some('—'),
        "ndash" => Some('–'),
        "hellip" => Some('…'),
        "copy" => Some('©'),
        "rsquo" => Some('’'),
        "lsquo" => Some('‘'),
        "ldquo" => Some('“'),
        "rdquo" => Some('”'),
        _ => name.strip_prefix('#').and_then(|number| {
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => number.parse(),
            };
            code.ok().and_then(char::from_u32).filter(|c| !c.is_control())
        }),
    };
    match decoded {
        Some(c) => {
            out.push(c);
            end + 1
        }
        None => 0,
    }
}

/// `\_` is `_`.
fn escape(rest: &str, out: &mut String) -> usize {
    match rest[1..].chars().next() {
        Some(c) if c.is_ascii_punctuation() && c != '\\' => {
            out.push(c);
            1 + c.len_utf8()
        }
        _ => 0,
    }
}

/// The name of a reStructuredText role in front of its backtick: ``:func:`x` ``.
fn role(rest: &str) -> usize {
    let name = rest[1..].bytes().take_while(|b| b.is_ascii_lowercase() || *b == b':' || *b == b'-').count();
    let followed = rest[1 + name..].starts_with('`');
    if name > 1 && followed && rest.as_bytes()[name] == b':' { 1 + name } else { 0 }
}

/// POD: `B<words>`, `C<< code >>`, `L<text|target>`, `E<lt>`.
fn pod(rest: &str, out: &mut String) -> usize {
    let kind = rest.as_bytes()[0];
    if !b"BCEFILSXZ".contains(&kind) || out.ends_with(char::is_alphanumeric) {
        return 0;
    }
    let run = rest[1..].bytes().take_while(|b| *b == b'<').count();
    // Several brackets count only with a space behind them: `C<< a > b >>`, but `S<<-- here>`.
    let marks = if run > 1 && !rest[1 + run..].starts_with(' ') { 1 } else { run };
    let close = ">".repeat(marks);
    let inner_from = 1 + marks;
    let Some(length) = rest[inner_from..].find(&close).filter(|length| *length < SPAN_BYTES_MAX) else { return 0 };
    let inner = rest[inner_from..inner_from + length].trim();
    match kind {
        b'E' => match inner {
            "lt" => out.push('<'),
            "gt" => out.push('>'),
            "sol" => out.push('/'),
            "verbar" => out.push('|'),
            _ => {}
        },
        b'X' | b'Z' => {}
        b'C' => {
            out.push('`');
            out.push_str(inner);
            out.push('`');
        }
        b'L' => out.push_str(inner.split('|').next().unwrap_or(inner)),
        _ => out.push_str(&clean(inner)),
    }
    inner_from + length + marks
}

#[cfg(test)]
mod tests;
