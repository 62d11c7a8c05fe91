//! Reads a moniker's `config` with problems that name the field. Used at creation (`check`) and,
//! on a config that passed, at every step.

use schemas::problem::FieldProblem;
use schemas::session::SessionSpec;
use serde_json::{Map, Value};

/// The settings of one session, and what is wrong with them.
pub struct Settings {
    map: Map<String, Value>,
    known: Vec<&'static str>,
    problems: Vec<FieldProblem>,
}

impl Settings {
    pub fn of(spec: &SessionSpec) -> Self {
        let mut problems = Vec::new();
        let map = match spec.config.to_value() {
            Value::Object(map) => map,
            Value::Null => Map::new(),
            other => {
                problems
                    .push(FieldProblem::new("payload.config", format!("must be an object, not {}", kind_of(&other))));
                Map::new()
            }
        };
        Self { map, known: Vec::new(), problems }
    }

    /// A whole number within bounds, both included.
    pub fn number(&mut self, key: &'static str, min: u64, max: u64) -> Option<u64> {
        match self.take(key)? {
            Value::Number(number) if number.as_u64().is_some_and(|n| (min..=max).contains(&n)) => number.as_u64(),
            other => {
                let shown = brief(&other);
                self.problem(key, format!("must be a whole number from {min} to {max}, not {shown}"))
            }
        }
    }

    /// A text that is not blank and has at most `max` bytes.
    pub fn text(&mut self, key: &'static str, max: usize) -> Option<String> {
        match self.take(key)? {
            Value::String(text) if !text.trim().is_empty() && text.len() <= max => Some(text),
            Value::String(text) if text.len() > max => {
                self.problem(key, format!("has {} bytes; at most {max} are allowed", text.len()))
            }
            other => {
                let shown = brief(&other);
                self.problem(key, format!("must be a text that is not empty, not {shown}"))
            }
        }
    }

    /// One of a few words.
    pub fn choice<T: Copy>(&mut self, key: &'static str, choices: &[(&str, T)]) -> Option<T> {
        let value = self.take(key)?;
        let found = value.as_str().and_then(|text| choices.iter().find(|(name, _)| *name == text));
        if let Some((_, choice)) = found {
            return Some(*choice);
        }
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        self.problem(key, format!("must be one of {}, not {}", names.join(", "), brief(&value)))
    }

    /// True or false.
    pub fn flag(&mut self, key: &'static str) -> Option<bool> {
        match self.take(key)? {
            Value::Bool(flag) => Some(flag),
            other => {
                let shown = brief(&other);
                self.problem(key, format!("must be true or false, not {shown}"))
            }
        }
    }

    /// A list of texts; a single text counts as a list of one.
    pub fn texts(&mut self, key: &'static str, max: usize) -> Vec<String> {
        let list = match self.take(key) {
            None => return Vec::new(),
            Some(Value::String(one)) => vec![Value::String(one)],
            Some(Value::Array(list)) => list,
            Some(other) => {
                let shown = brief(&other);
                self.problem::<()>(key, format!("must be a list of texts, not {shown}"));
                return Vec::new();
            }
        };
        if list.len() > max {
            self.problem::<()>(key, format!("has {} entries; at most {max} are allowed", list.len()));
            return Vec::new();
        }
        let mut texts = Vec::with_capacity(list.len());
        for (index, value) in list.into_iter().enumerate() {
            match value {
                Value::String(text) if !text.trim().is_empty() => texts.push(text),
                other => self.problems.push(FieldProblem::new(
                    format!("payload.config.{key}[{index}]"),
                    format!("must be a text that is not empty, not {}", brief(&other)),
                )),
            }
        }
        texts
    }

    /// Records that a needed key is absent, unless something is wrong with it already.
    pub fn required(&mut self, key: &'static str, remedy: &str) {
        let field = format!("payload.config.{key}");
        if !self.problems.iter().any(|p| p.field.starts_with(&field)) {
            self.problems.push(FieldProblem::new(field, format!("is missing: {remedy}")));
        }
    }

    pub fn problem<T>(&mut self, key: &str, message: impl Into<String>) -> Option<T> {
        self.problems.push(FieldProblem::new(format!("payload.config.{key}"), message));
        None
    }

    /// All problems, with keys that nobody asked for: most often a typing error.
    pub fn finish(mut self) -> Vec<FieldProblem> {
        let known = if self.known.is_empty() {
            "this moniker has no settings".to_owned()
        } else {
            format!("known settings are {}", self.known.join(", "))
        };
        for key in self.map.keys() {
            self.problems.push(FieldProblem::new(format!("payload.config.{key}"), format!("is not known; {known}")));
        }
        self.problems
    }

    fn take(&mut self, key: &'static str) -> Option<Value> {
        self.known.push(key);
        self.map.remove(key).filter(|value| !value.is_null())
    }
}

/// What a JSON value is, for a message.
pub fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A value for a message: scalars as they are, cut; others by kind.
pub fn brief(value: &Value) -> String {
    match value {
        Value::Array(_) | Value::Object(_) => kind_of(value).to_owned(),
        scalar => clip(&scalar.to_string(), 60),
    }
}

/// At most `max` characters, with an ellipsis when cut.
pub fn clip(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
