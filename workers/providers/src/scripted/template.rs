//! Placeholders in scripted replies: `{{subject}}`, `{{n}}`, `{{step}}`, `{{profile}}`,
//! `{{state}}`, `{{state.a.b}}`, `{{guidance}}`, `{{guidance.a}}`, `{{prompt}}`, `{{brief}}`, `{{result}}`, each
//! with `|what else`.

use domain::moniker::model::prompt;
use serde_json::{Map, Value};

use super::asked::Asked;
use super::token_of;

/// What placeholders are filled from.
#[derive(Debug)]
pub struct Facts {
    pub frame: Option<Value>,
    /// Number of the step, from 1: one more than the number its token ends with.
    pub n: u64,
    profile: Option<String>,
    prompt: String,
    result: String,
}

impl Facts {
    pub fn new(asked: &Asked) -> Self {
        let frame = prompt::frame_of(&asked.prompt);
        let token = token_of(frame.as_ref());
        let number = token.rsplit('/').next().and_then(|number| number.parse::<u64>().ok());
        Self {
            n: number.unwrap_or(0).saturating_add(1),
            frame,
            profile: asked.profile.clone(),
            prompt: asked.prompt.clone(),
            result: asked.results.clone(),
        }
    }

    fn get(&self, name: &str) -> Option<Value> {
        let frame = self.frame.as_ref();
        match name.split_once('.').unwrap_or((name, "")) {
            ("n", "") => Some(self.n.into()),
            ("step", "") => Some(token_of(frame).into()),
            ("prompt", "") => Some(self.prompt.as_str().into()),
            ("brief", "") => Some(brief(&self.prompt)).filter(|text| !text.is_empty()).map(Value::from),
            ("result", "") => Some(self.result.as_str()).filter(|text| !text.is_empty()).map(Value::from),
            ("profile", "") => self.profile.as_deref().map(Value::from),
            ("subject", "") => frame?.get("state")?.get("subject").cloned(),
            (root @ ("state" | "guidance"), path) => {
                let keys = path.split('.').filter(|key| !key.is_empty());
                keys.fold(frame?.get(root), |value, key| value?.get(key)).cloned()
            }
            _ => None,
        }
    }
}

const NAMES: [&str; 9] = ["n", "step", "profile", "subject", "state", "guidance", "prompt", "brief", "result"];
/// Of a prompt in `{{brief}}`.
const BRIEF_CHARS: usize = 200;
/// In an object: its value's fields are taken in first, as in `{"...": "{{state}}", "told": 1}`.
const SPREAD: &str = "...";

/// Enough of a prompt to know it by, on one line.
fn brief(prompt: &str) -> String {
    let line = prompt.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut = line.char_indices().nth(BRIEF_CHARS).map(|(end, _)| format!("{}…", &line[..end]));
    cut.unwrap_or(line)
}

/// Finds placeholders that nothing can fill.
///
/// # Errors
/// The name, and the known ones.
pub fn check(value: &Value) -> Result<(), String> {
    match value {
        Value::String(text) => pieces(text).try_for_each(|piece| match piece {
            Piece::Name(name, _) if !NAMES.contains(&name.split('.').next().unwrap_or("")) => {
                Err(format!("{{{{{name}}}}} is no placeholder; known are {}", NAMES.join(", ")))
            }
            _ => Ok(()),
        }),
        Value::Array(list) => list.iter().try_for_each(check),
        Value::Object(map) => map.values().try_for_each(check),
        _ => Ok(()),
    }
}

/// Fills a text in. Values that are no text appear as JSON.
pub fn text(template: &str, facts: &Facts) -> String {
    let mut out = String::with_capacity(template.len());
    for piece in pieces(template) {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Name(name, otherwise) => match facts.get(name) {
                Some(Value::String(text)) => out.push_str(&text),
                Some(Value::Null) | None => out.push_str(otherwise),
                Some(other) => out.push_str(&other.to_string()),
            },
        }
    }
    out
}

/// Fills a value in. A text that is one placeholder becomes the value itself.
pub fn value(template: &Value, facts: &Facts) -> Value {
    match template {
        Value::String(template) => {
            let mut all = pieces(template);
            match (all.next(), all.next()) {
                (Some(Piece::Name(name, otherwise)), None) => facts.get(name).unwrap_or_else(|| otherwise.into()),
                _ => text(template, facts).into(),
            }
        }
        Value::Array(list) => list.iter().map(|item| value(item, facts)).collect(),
        Value::Object(map) => {
            let mut out = match map.get(SPREAD).map(|spread| value(spread, facts)) {
                Some(Value::Object(fields)) => fields,
                _ => Map::new(),
            };
            out.extend(
                map.iter().filter(|(key, _)| *key != SPREAD).map(|(key, item)| (key.clone(), value(item, facts))),
            );
            Value::Object(out)
        }
        other => other.clone(),
    }
}

enum Piece<'a> {
    Text(&'a str),
    /// A placeholder's name and what stands for it when there is no value.
    Name(&'a str, &'a str),
}

fn pieces(template: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = template;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let Some(at) = rest.find("{{").filter(|at| rest[*at..].contains("}}")) else {
            return Some(Piece::Text(std::mem::take(&mut rest)));
        };
        if at > 0 {
            let (text, after) = rest.split_at(at);
            rest = after;
            return Some(Piece::Text(text));
        }
        let end = rest.find("}}").unwrap_or(rest.len());
        let inner = &rest[2..end];
        rest = &rest[end + 2..];
        let (name, otherwise) = inner.split_once('|').unwrap_or((inner, ""));
        Some(Piece::Name(name.trim(), otherwise.trim()))
    })
}
