//! From text to nodes.

use serde_json::Value;

use super::{Block, Expression, Helper, LoopValue, Node};

const DEPTH_MAX: usize = 32;
const BLOCKS: [(&str, Block); 4] =
    [("if", Block::If), ("unless", Block::Unless), ("each", Block::Each), ("with", Block::With)];
const HELPERS: [(&str, Helper); 9] = [
    ("eq", Helper::Eq),
    ("ne", Helper::Ne),
    ("gt", Helper::Gt),
    ("gte", Helper::Gte),
    ("lt", Helper::Lt),
    ("lte", Helper::Lte),
    ("and", Helper::And),
    ("or", Helper::Or),
    ("not", Helper::Not),
];

/// A block that is still open.
struct Open {
    name: &'static str,
    kind: Block,
    expression: Expression,
    body: Vec<Node>,
    /// Whether its `else` was seen: then `body` is done and nodes go to `otherwise`.
    is_else: bool,
    otherwise: Vec<Node>,
}

pub(super) fn parse(text: &str) -> Result<Vec<Node>, String> {
    let mut reader = Reader { top: Vec::new(), open: Vec::new() };
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        let line = || 1 + text[..text.len() - rest.len() + start].matches('\n').count();
        let told = |what: String| format!("line {}: {what}", line());
        reader.add(Node::Text(rest[..start].to_owned()));
        let tag = &rest[start..];
        let (from, close) = if tag.starts_with("{{{") {
            (3, "}}}")
        } else if tag.starts_with("{{!--") {
            (5, "--}}")
        } else {
            (2, "}}")
        };
        let Some(end) = tag[from..].find(close) else {
            return Err(told(format!("{{{{ is not closed; end the place with {close}")));
        };
        let inner = tag[from..from + end].trim();
        match close {
            "--}}" => {}
            "}}}" => reader.add(Node::Place { expression: expression(inner).map_err(told)?, raw: true }),
            _ => reader.tag(inner).map_err(told)?,
        }
        rest = &tag[from + end + close.len()..];
    }
    reader.add(Node::Text(rest.to_owned()));
    match reader.open.pop() {
        Some(block) => Err(format!("#{0} is not closed; add {{{{/{0}}}}}", block.name)),
        None => Ok(reader.top),
    }
}

struct Reader {
    top: Vec<Node>,
    open: Vec<Open>,
}

impl Reader {
    fn add(&mut self, node: Node) {
        if matches!(&node, Node::Text(text) if text.is_empty()) {
            return;
        }
        match self.open.last_mut() {
            Some(block) if block.is_else => block.otherwise.push(node),
            Some(block) => block.body.push(node),
            None => self.top.push(node),
        }
    }

    fn tag(&mut self, inner: &str) -> Result<(), String> {
        if inner.starts_with('!') {
            return Ok(());
        }
        if let Some(block) = inner.strip_prefix('#') {
            return self.begin(block);
        }
        if let Some(name) = inner.strip_prefix('/') {
            return self.end(name.trim());
        }
        if inner == "else" {
            return match self.open.last_mut() {
                Some(block) if !block.is_else => {
                    block.is_else = true;
                    Ok(())
                }
                _ => Err("else belongs to no block".to_owned()),
            };
        }
        if inner.split_whitespace().next() == Some("else") {
            return Err("else takes nothing; write another #if within it".to_owned());
        }
        let expression = expression(inner)?;
        self.add(Node::Place { expression, raw: false });
        Ok(())
    }

    fn begin(&mut self, text: &str) -> Result<(), String> {
        let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let Some((name, kind)) = BLOCKS.into_iter().find(|(known, _)| *known == name) else {
            return Err(format!("there is no block #{name}; known are {}", BLOCKS.map(|(name, _)| name).join(", ")));
        };
        if self.open.len() >= DEPTH_MAX {
            return Err(format!("blocks are nested more than {DEPTH_MAX} deep"));
        }
        let expression = expression(rest.trim())?;
        self.open.push(Open { name, kind, expression, body: Vec::new(), is_else: false, otherwise: Vec::new() });
        Ok(())
    }

    fn end(&mut self, name: &str) -> Result<(), String> {
        match self.open.pop() {
            Some(block) if block.name == name => {
                let Open { kind, expression, body, otherwise, .. } = block;
                self.add(Node::Block { kind, expression, body, otherwise });
                Ok(())
            }
            Some(block) => Err(format!("/{name} closes #{}; write /{}", block.name, block.name)),
            None => Err(format!("/{name} closes nothing; open it with #")),
        }
    }
}

fn expression(text: &str) -> Result<Expression, String> {
    if text.is_empty() {
        return Err("a place is empty; name what comes there, as in {{topic}}".to_owned());
    }
    let words = words(text)?;
    match words.as_slice() {
        [one] => term(one, 0),
        [helper, arguments @ ..] => call(helper, arguments, 0),
        [] => Err("a place is empty; name what comes there, as in {{topic}}".to_owned()),
    }
}

/// Words, quoted texts and parentheses with what is in them.
fn words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let (mut word, mut quote, mut depth) = (String::new(), None, 0_usize);
    for c in text.chars() {
        match (quote, c) {
            (Some(open), c) => {
                if c == open {
                    quote = None;
                }
                word.push(c);
            }
            (None, '"' | '\'') => {
                quote = Some(c);
                word.push(c);
            }
            (None, c) if c.is_whitespace() && depth == 0 => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            (None, c) => {
                match c {
                    '(' => depth += 1,
                    ')' => depth = depth.checked_sub(1).ok_or("a ) closes nothing")?,
                    _ => {}
                }
                word.push(c);
            }
        }
    }
    if quote.is_some() || depth > 0 {
        return Err(format!("{text:?} is not closed"));
    }
    if !word.is_empty() {
        words.push(word);
    }
    Ok(words)
}

fn call(helper: &str, arguments: &[String], depth: usize) -> Result<Expression, String> {
    let Some((_, helper)) = HELPERS.into_iter().find(|(known, _)| *known == helper) else {
        return Err(format!("there is no helper {helper}; known are {}", HELPERS.map(|(name, _)| name).join(", ")));
    };
    let wanted = match helper {
        Helper::Not => arguments.len() == 1,
        Helper::And | Helper::Or => arguments.len() >= 2,
        _ => arguments.len() == 2,
    };
    if !wanted {
        return Err("comparisons take two values, not takes one".to_owned());
    }
    let arguments = arguments.iter().map(|word| term(word, depth + 1)).collect::<Result<_, _>>()?;
    Ok(Expression::Call { helper, arguments })
}

fn term(word: &str, depth: usize) -> Result<Expression, String> {
    if depth > DEPTH_MAX {
        return Err(format!("comparisons are nested more than {DEPTH_MAX} deep"));
    }
    if let Some(inner) = word.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
        let words = words(inner)?;
        let Some((helper, arguments)) = words.split_first() else { return Err("() is empty".to_owned()) };
        return call(helper, arguments, depth);
    }
    let quoted = |quote: char| word.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    if let Some(text) = quoted('"').or_else(|| quoted('\'')) {
        return Ok(Expression::Literal(text.into()));
    }
    match word {
        "true" | "false" | "null" => return Ok(Expression::Literal(serde_json::from_str(word).unwrap_or(Value::Null))),
        "undefined" => return Ok(Expression::Literal(Value::Null)),
        "@index" => return Ok(Expression::Loop(LoopValue::Index)),
        "@first" => return Ok(Expression::Loop(LoopValue::First)),
        "@last" => return Ok(Expression::Loop(LoopValue::Last)),
        "@key" => return Ok(Expression::Loop(LoopValue::Key)),
        _ => {}
    }
    if word.starts_with(|c: char| c.is_ascii_digit() || c == '-')
        && let Ok(number) = serde_json::from_str::<Value>(word)
    {
        return Ok(Expression::Literal(number));
    }
    path(word)
}

fn path(word: &str) -> Result<Expression, String> {
    let (mut up, mut rest) = (0, word);
    while let Some(below) = rest.strip_prefix("../") {
        (up, rest) = (up + 1, below);
    }
    if rest == ".." {
        (up, rest) = (up + 1, "this");
    }
    let rest = rest.strip_prefix("./").unwrap_or(rest);
    let rest = rest.strip_prefix("$.").unwrap_or(rest);
    let names: Vec<&str> = match rest {
        "this" | "." => Vec::new(),
        rest => rest.strip_prefix("this.").unwrap_or(rest).split('.').collect(),
    };
    let plain = |name: &&str| name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name).to_owned();
    let names: Vec<String> = names.iter().map(plain).collect();
    let is_name = |name: &String| {
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_-$@ ".contains(c)) && !name.starts_with('@')
    };
    if names.iter().all(is_name) {
        return Ok(Expression::Path { up, names });
    }
    Err(format!("{word:?} is no path; names are joined by dots, as in {{{{input.topic}}}}"))
}
