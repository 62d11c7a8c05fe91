//! Cuts a text into headings, paragraphs and list items. Code, tables, front matter, comments and
//! rules are left out. Understands Markdown, reStructuredText, POD and plain hard-wrapped text.

mod line;

use line::{Line, is_code, is_rule, is_table, item_start, underline_level};

use super::{boilerplate, inline};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Heading(u8),
    Paragraph,
    Item,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    pub kind: Kind,
    /// Without markup, on one line.
    pub text: String,
}

/// The readable blocks of a text, in order.
pub fn split(text: &str) -> Vec<Block> {
    let pod = text.lines().any(|line| line.starts_with("=head1") || line.starts_with("=pod"));
    let mut cutter = Cutter { skip: if pod { Skip::UntilPod } else { Skip::Nothing }, pod, ..Cutter::default() };
    let mut lines = text.lines().peekable();
    cutter.front_matter(&mut lines);
    while let Some(line) = lines.next() {
        cutter.line(line, lines.peek().copied());
    }
    cutter.flush();
    cutter.blocks
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Skip {
    #[default]
    Nothing,
    Fence(char, usize),
    Comment,
    /// Program text before and between POD.
    UntilPod,
}

#[derive(Default)]
struct Cutter {
    blocks: Vec<Block>,
    /// Lines of the open paragraph or item.
    open: Vec<String>,
    open_is_item: bool,
    skip: Skip,
    pod: bool,
    side_section: Option<u8>,
    blank_before: bool,
}

/// Front matter longer than this is none.
const FRONT_MATTER_LINES_MAX: usize = 60;

impl Cutter {
    fn front_matter(&mut self, lines: &mut std::iter::Peekable<std::str::Lines<'_>>) {
        self.blank_before = true;
        if lines.peek().is_none_or(|line| line.trim_end() != "---") {
            return;
        }
        let mut ahead = lines.clone();
        ahead.next();
        let mut title = None;
        for _ in 0..FRONT_MATTER_LINES_MAX {
            let Some(line) = ahead.next() else { return };
            if line.trim_end() == "---" {
                *lines = ahead;
                if let Some(title) = title {
                    self.heading(1, title);
                }
                return;
            }
            title = title.or_else(|| line.strip_prefix("title:").map(|text| text.trim().trim_matches(['"', '\''])));
        }
    }

    fn line(&mut self, raw: &str, next: Option<&str>) {
        let line = Line::new(raw);
        if self.skipped(&line) || self.pod_directive(&line) {
            return;
        }
        let blank_before = std::mem::replace(&mut self.blank_before, line.text.is_empty());
        if line.text.is_empty() || is_rule(line.text) || is_table(line.text) || line.is_directive() {
            return self.flush();
        }
        if let Some((level, heading)) = line.atx_heading().filter(|_| !self.pod) {
            self.flush();
            return self.heading(level, heading);
        }
        let alone = self.open.is_empty();
        if alone && let Some(level) = next.and_then(|next| underline_level(line.text, next)) {
            return self.heading(level, line.text);
        }
        let next_blank = next.is_none_or(|next| next.trim().is_empty());
        if blank_before && next_blank && !self.pod && line.reads_as_heading() {
            self.flush();
            return self.heading(3, line.text);
        }
        if let Some(item) = item_start(line.text) {
            self.flush();
            self.open_is_item = true;
            return self.open.push(item.to_owned());
        }
        // An indented line after a blank one is code, unless it reads like prose.
        if is_code(line.text) && (line.indent >= 2 || alone || self.pod) {
            return self.flush();
        }
        self.open.push(line.text.to_owned());
    }

    /// Whether the line is inside (or opens, or closes) something that is left out.
    fn skipped(&mut self, line: &Line<'_>) -> bool {
        match self.skip {
            Skip::Fence(mark, length) => {
                if line.fence().is_some_and(|(m, l)| m == mark && l >= length) {
                    self.skip = Skip::Nothing;
                }
                return true;
            }
            Skip::Comment => {
                if line.text.contains("-->") {
                    self.skip = Skip::Nothing;
                }
                return true;
            }
            Skip::UntilPod => {
                let starts = line.is_pod() && !line.text.starts_with("=cut");
                if starts {
                    self.skip = Skip::Nothing;
                }
                return !starts;
            }
            Skip::Nothing => {}
        }
        if let Some((mark, length)) = line.fence() {
            self.flush();
            self.skip = Skip::Fence(mark, length);
            return true;
        }
        if line.text.starts_with("<!--") {
            if !line.text.contains("-->") {
                self.skip = Skip::Comment;
            }
            return true;
        }
        false
    }

    fn pod_directive(&mut self, line: &Line<'_>) -> bool {
        if !self.pod || !line.is_pod() {
            return false;
        }
        self.flush();
        let (word, rest) = line.text[1..].split_once(char::is_whitespace).unwrap_or((&line.text[1..], ""));
        match word {
            "head1" => self.heading(2, rest),
            "head2" | "head3" | "head4" => self.heading(3, rest),
            "cut" => self.skip = Skip::UntilPod,
            _ => {}
        }
        true
    }

    fn heading(&mut self, level: u8, text: &str) {
        let text = inline::clean(text.trim_matches(|c: char| matches!(c, '#' | '-' | '=' | '*' | '~' | ' ')));
        if text.is_empty() {
            return;
        }
        // A section that is passed over ends at the next heading of its level or above.
        if boilerplate::is_side_section(&text) {
            self.side_section = Some(level);
            return;
        }
        if self.side_section.is_some_and(|side| level <= side) {
            self.side_section = None;
        }
        if self.side_section.is_none() {
            self.blocks.push(Block { kind: Kind::Heading(level), text });
        }
    }

    fn flush(&mut self) {
        let lines = std::mem::take(&mut self.open);
        let kind = if std::mem::take(&mut self.open_is_item) { Kind::Item } else { Kind::Paragraph };
        if lines.is_empty() || self.side_section.is_some() || line::is_list_of_scraps(&lines) {
            return;
        }
        let text = inline::clean(&join(&lines));
        if !text.is_empty() && !boilerplate::is_notice(&text) {
            self.blocks.push(Block { kind, text });
        }
    }
}

/// Joins hard-wrapped lines; a word cut at a hyphen is not torn apart.
fn join(lines: &[String]) -> String {
    let mut text = String::new();
    for line in lines {
        let hyphen = text.ends_with('-')
            && text[..text.len() - 1].ends_with(char::is_lowercase)
            && line.starts_with(char::is_lowercase);
        if !text.is_empty() && !hyphen {
            text.push(' ');
        }
        text.push_str(line);
    }
    text
}

#[cfg(test)]
mod tests;
