//! HTML to text with light Markdown marks: headings, list items and code keep their standing,
//! scripts, styles, navigation and attributes go. No tree is built; broken pages are fine.

/// The text of a page.
pub fn to_text(page: &str) -> String {
    let page = main_part(page);
    let mut writer = Writer::default();
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        writer.text(&rest[..at]);
        rest = &rest[at..];
        let (tag, after) = read_tag(rest);
        match tag {
            Some(tag) => rest = writer.tag(&tag, after),
            None => {
                writer.text(&rest[..1]);
                rest = &rest[1..];
            }
        }
    }
    writer.text(rest);
    writer.out
}

/// What the page says is its matter, if it says so.
fn main_part(page: &str) -> &str {
    for name in ["main", "article"] {
        let Some(from) = find_tag(page, name) else { continue };
        let to = rfind_ignore_case(page, &format!("</{name}"));
        if let Some(to) = to.filter(|to| *to > from && to - from > 200) {
            return &page[from..to];
        }
    }
    page
}

fn find_tag(page: &str, name: &str) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = page[from..].find('<') {
        let start = from + at;
        let after = &page.as_bytes()[start + 1..];
        let same = after.len() > name.len()
            && after[..name.len()].eq_ignore_ascii_case(name.as_bytes())
            && !after[name.len()].is_ascii_alphanumeric();
        if same {
            return Some(start);
        }
        from = start + 1;
    }
    None
}

fn rfind_ignore_case(page: &str, what: &str) -> Option<usize> {
    let mut to = page.len();
    while let Some(at) = page[..to].rfind("</") {
        let candidate = &page.as_bytes()[at..];
        if candidate.len() >= what.len() && candidate[..what.len()].eq_ignore_ascii_case(what.as_bytes()) {
            return Some(at);
        }
        to = at;
    }
    None
}

struct Tag {
    name: String,
    closing: bool,
    /// `role="navigation"`, `aria-hidden`, `hidden`: not for readers.
    hidden: bool,
}

/// The tag at the start of `text` and what follows it; comments and declarations have no name.
fn read_tag(text: &str) -> (Option<Tag>, &str) {
    if let Some(comment) = text.strip_prefix("<!--") {
        let after = comment.find("-->").map_or("", |end| &comment[end + 3..]);
        return (Some(Tag { name: String::new(), closing: false, hidden: false }), after);
    }
    let closing = text[1..].starts_with('/');
    let body = &text[if closing { 2 } else { 1 }..];
    let starts = body.starts_with(|c: char| c.is_ascii_alphabetic() || c == '!' || c == '?');
    if !starts {
        return (None, text);
    }
    let end = tag_end(body);
    let inner = &body[..end];
    let name: String =
        inner.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect::<String>().to_ascii_lowercase();
    let lower = inner.to_ascii_lowercase();
    let hidden = ["role=\"navigation\"", "aria-hidden=\"true\"", "class=\"sidebar", "class=\"nav", "id=\"toc"]
        .iter()
        .any(|mark| lower.contains(mark));
    (Some(Tag { name, closing, hidden }), body.get(end + 1..).unwrap_or(""))
}

/// Position of the `>` that ends a tag; one inside quotes does not.
fn tag_end(body: &str) -> usize {
    let mut quote = None;
    for (at, byte) in body.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return at,
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), close) if open == close => quote = None,
            _ => {}
        }
    }
    // A quote that is never closed must not swallow the page.
    body.find('>').unwrap_or(body.len())
}

/// Elements whose content is not running text.
const LEFT_OUT: &[&str] = &[
    "script", "style", "noscript", "template", "svg", "math", "nav", "header", "footer", "aside", "form", "button",
    "select", "iframe", "object", "canvas", "head", "table", "menu", "dialog",
];
const BLOCKS: &[&str] = &[
    "p",
    "div",
    "section",
    "article",
    "main",
    "body",
    "html",
    "ul",
    "ol",
    "dl",
    "dt",
    "dd",
    "blockquote",
    "figure",
    "figcaption",
    "details",
    "summary",
    "hr",
    "address",
    "center",
    "fieldset",
    "tr",
    "tbody",
    "thead",
];

#[derive(Default)]
struct Writer {
    out: String,
    in_pre: bool,
    in_code: bool,
    /// Element that is left out, and how deep it is nested in itself.
    skipping: Option<(String, usize)>,
    title: bool,
}

impl Writer {
    /// Handles a tag; gives back where to go on.
    fn tag<'a>(&mut self, tag: &Tag, after: &'a str) -> &'a str {
        if let Some((name, depth)) = &mut self.skipping {
            if *name == tag.name {
                *depth = if tag.closing { *depth - 1 } else { *depth + 1 };
                if *depth == 0 {
                    self.skipping = None;
                    self.line();
                }
            } else if name == "head" && tag.name == "title" {
                self.title = !tag.closing;
                self.line();
                if self.title {
                    self.out.push_str("# ");
                }
            } else if name == "head" && tag.name == "body" {
                self.skipping = None;
            }
            return after;
        }
        let name = tag.name.as_str();
        if !tag.closing && matches!(name, "script" | "style") {
            // Their text is not markup: only the closing tag counts.
            let close = format!("</{name}");
            let lower = after.to_ascii_lowercase();
            return lower
                .find(&close)
                .map_or("", |at| &after[at + close.len()..])
                .split_once('>')
                .map_or("", |(_, rest)| rest);
        }
        if !tag.closing && (LEFT_OUT.contains(&name) || (tag.hidden && matches!(name, "div" | "ul" | "section"))) {
            self.line();
            self.skipping = Some((name.to_owned(), 1));
            return after;
        }
        match (name, tag.closing) {
            ("h1" | "h2" | "h3" | "h4" | "h5" | "h6", false) => {
                self.line();
                let level = usize::from(name.as_bytes()[1] - b'0');
                self.out.push_str(&"#".repeat(level));
                self.out.push(' ');
            }
            ("h1" | "h2" | "h3" | "h4" | "h5" | "h6", true) => self.line(),
            ("pre", closing) => {
                self.line();
                self.out.push_str("```");
                self.in_pre = !closing;
                self.line();
            }
            ("li", false) => {
                self.line();
                self.out.push_str("- ");
            }
            ("br", _) => self.out.push('\n'),
            ("code" | "tt" | "kbd" | "samp", closing) if !self.in_pre && self.in_code == closing => {
                self.in_code = !closing;
                self.out.push('`');
            }
            (block, _) if BLOCKS.contains(&block) => self.line(),
            _ => {}
        }
        after
    }

    fn text(&mut self, text: &str) {
        if self.skipping.is_some() && !self.title {
            return;
        }
        if self.in_pre {
            self.out.push_str(text);
            return;
        }
        // Entities of running text are read along with its markup; in code they are plain text.
        let decoded;
        let text = if self.in_code {
            decoded = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&");
            decoded.as_str()
        } else {
            text
        };
        // White space of the source means nothing; one space stands for it.
        for (at, word) in text.split(char::is_whitespace).enumerate() {
            let glued = self.out.is_empty() || self.out.ends_with([' ', '\n']);
            if at > 0 && !glued {
                self.out.push(' ');
            }
            self.out.push_str(&word.replace("&nbsp;", " "));
        }
    }

    /// Ends the paragraph.
    fn line(&mut self) {
        while self.out.ends_with(' ') {
            self.out.pop();
        }
        // An item or heading without words leaves no mark behind.
        for mark in ["\n-", "\n#", "\n##", "\n###"] {
            if self.out.ends_with(mark) {
                self.out.truncate(self.out.len() - mark.len() + 1);
            }
        }
        if self.in_pre {
            self.out.push('\n');
        } else if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push_str(if self.out.ends_with('\n') { "\n" } else { "\n\n" });
        }
    }
}

#[cfg(test)]
mod tests;
