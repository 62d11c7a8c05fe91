//! Templates of prompts, addresses and bodies: the Handlebars subset of SPEC 4.5, read once and
//! rendered with values. Nothing is evaluated but paths, blocks and a few comparisons.

mod parse;
mod render;

#[cfg(test)]
mod tests;

use serde_json::Value;

/// A template that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    nodes: Vec<Node>,
}

/// What is done to values on their way into a text. A place in three braces is left as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Escape {
    /// For prompts.
    Nothing,
    /// Percent signs: a value cannot leave its place in an address.
    Url,
    /// As within the quotes of a JSON string.
    Json,
}

#[derive(Debug, Clone, PartialEq)]
enum Node {
    Text(String),
    Place { expression: Expression, raw: bool },
    Block { kind: Block, expression: Expression, body: Vec<Node>, otherwise: Vec<Node> },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    If,
    Unless,
    Each,
    With,
}

#[derive(Debug, Clone, PartialEq)]
enum Expression {
    Literal(Value),
    /// So many contexts up, then by names.
    Path {
        up: usize,
        names: Vec<String>,
    },
    /// Of the innermost `each`.
    Loop(LoopValue),
    Call {
        helper: Helper,
        arguments: Vec<Expression>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LoopValue {
    Index,
    First,
    Last,
    Key,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Helper {
    Eq,
    Ne,
    Gt,
    Gte,
    Lt,
    Lte,
    And,
    Or,
    Not,
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// What is wrong first, in words, with its line.
    pub fn parse(text: &str) -> Result<Self, String> {
        parse::parse(text).map(|nodes| Self { nodes })
    }

    /// Fills in values. What is missing becomes nothing.
    ///
    /// # Errors
    /// When the text would be too large, or too much work.
    pub fn render(&self, context: &Value, escape: Escape) -> Result<String, String> {
        render::render(&self.nodes, context, escape)
    }

    /// The value of a template that is one place and nothing else: a number stays a number.
    pub fn value(&self, context: &Value) -> Option<Value> {
        match self.nodes.as_slice() {
            [Node::Place { expression, .. }] => Some(render::value(expression, context)),
            _ => None,
        }
    }
}

/// Reads and renders at once.
///
/// # Errors
/// As of [`Template::parse`] and [`Template::render`].
pub fn rendered(text: &str, context: &Value, escape: Escape) -> Result<String, String> {
    if !text.contains("{{") {
        return Ok(text.to_owned());
    }
    Template::parse(text)?.render(context, escape)
}
