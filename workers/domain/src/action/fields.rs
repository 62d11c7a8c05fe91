//! Reading a JSON object field by field while collecting what is wrong with it.

use std::str::FromStr;

use schemas::id::IdError;
use schemas::limits::{ACTOR_BYTES_MAX, JSON_DEPTH_MAX};
use schemas::problem::{Code, FieldProblem, Problem};
use serde_json::{Map, Value};

use super::{SESSION_ACTOR, is_reserved_actor};
use crate::tool::APPROVER;

/// What was found wrong so far. The first special code given is the code of the whole.
#[derive(Debug, Default)]
pub struct Problems {
    list: Vec<FieldProblem>,
    code: Option<Code>,
}

/// A body of nonsense is not answered with an answer of its size.
const PROBLEMS_MAX: usize = 50;

impl Problems {
    /// Notes what is wrong with a field; the first problem of each field is kept.
    pub fn add(&mut self, field: impl Into<String>, message: impl Into<String>) {
        let field = field.into();
        if self.list.len() < PROBLEMS_MAX && self.list.iter().all(|problem| problem.field != field) {
            self.list.push(FieldProblem::new(field, message));
        }
    }

    /// Adds a problem that has a code of its own.
    pub fn add_as(&mut self, code: Code, field: impl Into<String>, message: impl Into<String>) {
        self.code.get_or_insert(code);
        self.add(field, message);
    }

    pub fn extend(&mut self, more: Vec<FieldProblem>) {
        for problem in more {
            self.add(problem.field, problem.message);
        }
    }

    /// Whether nothing more is noted, so that looking on is of no use.
    pub fn is_full(&self) -> bool {
        self.list.len() >= PROBLEMS_MAX
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn into_list(self) -> Vec<FieldProblem> {
        self.list
    }

    pub fn into_result(self) -> Result<(), Box<Problem>> {
        if self.list.is_empty() {
            return Ok(());
        }
        Err(Box::new(Problem::fields(self.code.unwrap_or(Code::InvalidRequest), self.list)))
    }
}

/// The refusal of one field.
pub fn wrong(field: &str, message: String) -> Box<Problem> {
    Box::new(Problem::fields(Code::InvalidRequest, vec![FieldProblem::new(field, message)]))
}

/// The refusal of JSON that is nested deeper than anything may be.
pub fn too_deep(field: &str) -> Box<Problem> {
    wrong(field, format!("is nested more than {JSON_DEPTH_MAX} levels deep; send flatter data, or a text of it"))
}

/// A JSON object at a path. `null` counts as absent.
#[derive(Debug, Clone)]
pub struct Object<'v> {
    path: String,
    map: Option<&'v Map<String, Value>>,
}

impl<'v> Object<'v> {
    /// The object at `path`; the empty path is the body itself.
    pub fn new(path: &str, map: &'v Map<String, Value>) -> Self {
        Self { path: path.to_owned(), map: Some(map) }
    }

    /// The full path of a field of this object.
    pub fn path(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    pub fn get(&self, name: &str) -> Option<&'v Value> {
        self.map?.get(name).filter(|value| !value.is_null())
    }

    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Whether the field is written at all, `null` included.
    pub fn has_key(&self, name: &str) -> bool {
        self.map.is_some_and(|map| map.contains_key(name))
    }

    pub fn is_empty(&self) -> bool {
        self.map.is_none_or(Map::is_empty)
    }

    /// All fields as they are written.
    pub fn entries(&self) -> impl Iterator<Item = (&'v String, &'v Value)> + use<'v> {
        self.map.into_iter().flatten()
    }

    /// Every field must be one of `known`; others are reported with the nearest of them.
    pub fn refuse_unknown(&self, known: &[&str], problems: &mut Problems) {
        for name in self.map.into_iter().flat_map(Map::keys) {
            if problems.is_full() {
                return;
            }
            if !known.contains(&name.as_str()) {
                let shown: String = name.chars().take(64).collect();
                problems.add(self.path(&shown), unknown(name, known));
            }
        }
    }

    pub fn string(&self, name: &str, problems: &mut Problems) -> Option<&'v str> {
        let value = self.get(name)?;
        let text = value.as_str();
        if text.is_none() {
            self.wrong(name, "a string", value, problems);
        }
        text
    }

    /// A string for people: not blank, at most `max` bytes, on one line.
    pub fn text(&self, name: &str, max: usize, problems: &mut Problems) -> Option<&'v str> {
        let text = self.string(name, problems)?;
        let wrong = if text.trim().is_empty() {
            "must not be blank; leave it out instead".to_owned()
        } else if text.len() > max {
            format!("is {} bytes long; at most {max} are allowed", text.len())
        } else if text.chars().any(char::is_control) {
            "must not contain control characters".to_owned()
        } else {
            return Some(text);
        };
        problems.add(self.path(name), wrong);
        None
    }

    /// Who acts. As whom the fleet itself acts is nobody's to claim.
    pub fn actor(&self, problems: &mut Problems) -> Option<&'v str> {
        let actor = self.text("actor", ACTOR_BYTES_MAX, problems)?;
        if is_reserved_actor(actor) {
            let what = format!("must not be {APPROVER}, nor begin with {SESSION_ACTOR}: as such the fleet itself acts");
            problems.add(self.path("actor"), what);
            return None;
        }
        Some(actor)
    }

    pub fn id<T: FromStr<Err = IdError>>(&self, name: &str, problems: &mut Problems) -> Option<T> {
        match self.string(name, problems)?.parse() {
            Ok(id) => Some(id),
            Err(error) => {
                problems.add(self.path(name), error.to_string());
                None
            }
        }
    }

    pub fn boolean(&self, name: &str, problems: &mut Problems) -> Option<bool> {
        let value = self.get(name)?;
        let flag = value.as_bool();
        if flag.is_none() {
            self.wrong(name, "true or false", value, problems);
        }
        flag
    }

    /// A whole number within the bounds, both included.
    pub fn whole(&self, name: &str, min: u64, max: u64, problems: &mut Problems) -> Option<u64> {
        let value = self.get(name)?;
        let number = value.as_u64().filter(|n| (min..=max).contains(n));
        if number.is_none() {
            let wanted = format!("a whole number from {min} to {max}");
            self.wrong(name, &wanted, value, problems);
        }
        number
    }

    /// The object in a field. If it is absent or not an object, all its fields are absent.
    pub fn object(&self, name: &str, problems: &mut Problems) -> Object<'v> {
        let map = self.get(name).and_then(|value| {
            if !value.is_object() {
                self.wrong(name, "an object", value, problems);
            }
            value.as_object()
        });
        Object { path: self.path(name), map }
    }

    fn wrong(&self, name: &str, wanted: &str, value: &Value, problems: &mut Problems) {
        let given = match value {
            Value::Number(number) => format!("the number {number}"),
            other => kind_of(other).to_owned(),
        };
        problems.add(self.path(name), format!("must be {wanted}, not {given}"));
    }
}

pub fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Says that a text is not one of the allowed ones, and which it may have meant.
pub fn not_one_of(text: &str, allowed: &[&str]) -> String {
    let shown: String = text.chars().take(64).collect();
    let hint = nearest(text, allowed).map(|name| format!("; did you mean {name:?}?")).unwrap_or_default();
    format!("{shown:?} is none of {}{hint}", allowed.join(", "))
}

/// Says that a field is not known, and which was meant.
pub fn unknown(name: &str, known: &[&str]) -> String {
    match nearest(name, known) {
        Some(near) => format!("is not a known field; did you mean {near:?}?"),
        None if known.is_empty() => "is not a known field; there are none here".to_owned(),
        None => format!("is not a known field; known are {}", known.join(", ")),
    }
}

fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    if name.len() > 64 {
        return None;
    }
    let lower = name.to_ascii_lowercase();
    known
        .iter()
        .map(|candidate| (distance(&lower, candidate), *candidate))
        .filter(|(edits, candidate)| *edits <= (candidate.len() / 3).max(2) && *edits * 2 < candidate.len())
        .min()
        .map(|(_, candidate)| candidate)
}

/// Number of single-character edits between two short texts (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_offered() {
        let known = ["session_id", "agent_id", "payload"];
        assert_eq!(nearest("sesion_id", &known), Some("session_id"));
        assert_eq!(nearest("sessionId", &known), Some("session_id"));
        assert_eq!(nearest("playload", &known), Some("payload"));
        assert_eq!(nearest("colour", &known), None);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
