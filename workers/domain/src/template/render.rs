//! From nodes and values to text.

use std::borrow::Cow;
use std::fmt::Write;

use schemas::limits::RENDERED_BYTES_MAX;
use serde_json::Value;

use super::{Block, Escape, Expression, Helper, LoopValue, Node};

/// Nodes of one rendering: loops within loops over large values end here.
const NODES_MAX: usize = 200_000;

pub(super) fn render(nodes: &[Node], context: &Value, escape: Escape) -> Result<String, String> {
    let mut writer = Writer { out: String::new(), contexts: vec![context], loops: Vec::new(), nodes: 0, escape };
    writer.all(nodes)?;
    Ok(writer.out)
}

pub(super) fn value(expression: &Expression, context: &Value) -> Value {
    evaluate(expression, &[context], &[]).into_owned()
}

/// Where a loop is.
#[derive(Clone)]
struct Turn {
    index: usize,
    is_last: bool,
    key: Option<String>,
}

struct Writer<'v> {
    out: String,
    contexts: Vec<&'v Value>,
    loops: Vec<Turn>,
    nodes: usize,
    escape: Escape,
}

impl<'v> Writer<'v> {
    fn all(&mut self, nodes: &[Node]) -> Result<(), String> {
        nodes.iter().try_for_each(|node| self.node(node))
    }

    fn node(&mut self, node: &Node) -> Result<(), String> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return Err("the template repeats too much; give it less to loop over".to_owned());
        }
        match node {
            Node::Text(text) => self.out.push_str(text),
            Node::Place { expression, raw } => {
                let text = shown(&evaluate(expression, &self.contexts, &self.loops));
                let escape = if *raw { Escape::Nothing } else { self.escape };
                push(&mut self.out, &text, escape);
            }
            Node::Block { kind, expression, body, otherwise } => self.block(*kind, expression, body, otherwise)?,
        }
        if self.out.len() > RENDERED_BYTES_MAX {
            return Err(format!("the text has more than {RENDERED_BYTES_MAX} bytes; give it less to show"));
        }
        Ok(())
    }

    fn block(&mut self, kind: Block, on: &Expression, body: &[Node], otherwise: &[Node]) -> Result<(), String> {
        let truth = is_true(&evaluate(on, &self.contexts, &self.loops));
        match kind {
            Block::If => self.all(if truth { body } else { otherwise }),
            Block::Unless => self.all(if truth { otherwise } else { body }),
            Block::With if truth => match self.place(on) {
                Some(value) => self.within(value, body),
                None => Ok(()),
            },
            Block::With => self.all(otherwise),
            Block::Each => self.each(on, body, otherwise),
        }
    }

    fn each(&mut self, on: &Expression, body: &[Node], otherwise: &[Node]) -> Result<(), String> {
        let items: Vec<(Option<&String>, &'v Value)> = match self.place(on) {
            Some(Value::Array(items)) => items.iter().map(|item| (None, item)).collect(),
            Some(Value::Object(map)) => map.iter().map(|(key, value)| (Some(key), value)).collect(),
            _ => Vec::new(),
        };
        if items.is_empty() {
            return self.all(otherwise);
        }
        let count = items.len();
        for (index, (key, item)) in items.into_iter().enumerate() {
            self.loops.push(Turn { index, is_last: index + 1 == count, key: key.cloned() });
            self.within(item, body)?;
            self.loops.pop();
        }
        Ok(())
    }

    fn within(&mut self, value: &'v Value, body: &[Node]) -> Result<(), String> {
        self.contexts.push(value);
        self.all(body)?;
        self.contexts.pop();
        Ok(())
    }

    /// A value of the context itself, to go on within it.
    fn place(&self, expression: &Expression) -> Option<&'v Value> {
        match expression {
            Expression::Path { up, names } => find(&self.contexts, *up, names),
            _ => None,
        }
    }
}

fn find<'v>(contexts: &[&'v Value], up: usize, names: &[String]) -> Option<&'v Value> {
    let at = contexts.len().checked_sub(up + 1)?;
    names.iter().try_fold(contexts[at], |at, name| match at {
        Value::Object(map) => map.get(name),
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        _ => None,
    })
}

fn evaluate<'v>(expression: &Expression, contexts: &[&'v Value], loops: &[Turn]) -> Cow<'v, Value> {
    match expression {
        Expression::Literal(value) => Cow::Owned(value.clone()),
        Expression::Path { up, names } => find(contexts, *up, names).map_or(Cow::Owned(Value::Null), Cow::Borrowed),
        Expression::Loop(what) => Cow::Owned(loops.last().map_or(Value::Null, |turn| match what {
            LoopValue::Index => turn.index.into(),
            LoopValue::First => (turn.index == 0).into(),
            LoopValue::Last => turn.is_last.into(),
            LoopValue::Key => turn.key.clone().map_or_else(|| turn.index.into(), Value::from),
        })),
        Expression::Call { helper, arguments } => {
            let values: Vec<Cow<'v, Value>> = arguments.iter().map(|one| evaluate(one, contexts, loops)).collect();
            Cow::Owned(compare(*helper, &values).into())
        }
    }
}

fn compare(helper: Helper, values: &[Cow<'_, Value>]) -> bool {
    let order = || match (&*values[0], &*values[1]) {
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (a, b) => a.as_f64()?.partial_cmp(&b.as_f64()?),
    };
    let same = || match (values[0].as_f64(), values[1].as_f64()) {
        (Some(a), Some(b)) => a == b,
        _ => values[0] == values[1],
    };
    match helper {
        Helper::Eq => same(),
        Helper::Ne => !same(),
        Helper::Gt => order().is_some_and(std::cmp::Ordering::is_gt),
        Helper::Gte => order().is_some_and(std::cmp::Ordering::is_ge),
        Helper::Lt => order().is_some_and(std::cmp::Ordering::is_lt),
        Helper::Lte => order().is_some_and(std::cmp::Ordering::is_le),
        Helper::And => values.iter().all(|value| is_true(value)),
        Helper::Or => values.iter().any(|value| is_true(value)),
        Helper::Not => !is_true(&values[0]),
    }
}

/// Nothing, zero and what is empty are false.
fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(_) => true,
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn push(out: &mut String, text: &str, escape: Escape) {
    match escape {
        Escape::Nothing => out.push_str(text),
        Escape::Json => {
            let quoted = Value::from(text).to_string();
            out.push_str(&quoted[1..quoted.len() - 1]);
        }
        Escape::Url => {
            for byte in text.bytes() {
                if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
                    out.push(char::from(byte));
                } else {
                    // Writing to a String cannot fail.
                    _ = write!(out, "%{byte:02X}");
                }
            }
        }
    }
}
