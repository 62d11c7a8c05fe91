//! Values against a JSON Schema, as far as the schema of the ingress goes. A keyword that is not known here
//! fails the test: what nobody looks at is held to nothing.

use std::cell::RefCell;
use std::collections::BTreeMap;

use regex::Regex;
use serde_json::{Map, Value};

pub(super) struct Schema {
    root: Value,
    patterns: RefCell<BTreeMap<String, Regex>>,
}

impl Schema {
    pub fn parse(text: &str) -> Self {
        Self { root: serde_json::from_str(text).expect("a schema is JSON"), patterns: RefCell::default() }
    }

    pub fn takes(&self, value: &Value) -> bool {
        self.fits(&self.root, value)
    }

    fn fits(&self, schema: &Value, value: &Value) -> bool {
        match schema {
            Value::Bool(all) => *all,
            Value::Object(words) => words.iter().all(|(word, of)| self.holds(words, (word.as_str(), of), value)),
            other => panic!("{other} is no schema"),
        }
    }

    fn holds(&self, words: &Map<String, Value>, (word, of): (&str, &Value), value: &Value) -> bool {
        match word {
            // What is told to people, and what other keywords look at.
            "$schema" | "$id" | "$defs" | "title" | "description" | "then" | "else" => true,
            "$ref" => self.fits(self.named(of), value),
            "type" if of.is_string() => is_of(of, value),
            "type" => list(of).iter().any(|name| is_of(name, value)),
            "enum" => list(of).contains(value),
            "const" => of == value,
            "not" => !self.fits(of, value),
            "allOf" => list(of).iter().all(|schema| self.fits(schema, value)),
            "anyOf" => list(of).iter().any(|schema| self.fits(schema, value)),
            "oneOf" => list(of).iter().filter(|schema| self.fits(schema, value)).count() == 1,
            "if" => {
                let branch = if self.fits(of, value) { "then" } else { "else" };
                words.get(branch).is_none_or(|schema| self.fits(schema, value))
            }
            "required" | "properties" | "additionalProperties" | "minProperties" => {
                value.as_object().is_none_or(|map| self.holds_members(words, (word, of), map))
            }
            "minLength" | "maxLength" | "pattern" => {
                value.as_str().is_none_or(|text| self.holds_text((word, of), text))
            }
            "minimum" => value.as_f64().is_none_or(|number| number >= of.as_f64().expect("a number")),
            "maximum" => value.as_f64().is_none_or(|number| number <= of.as_f64().expect("a number")),
            other => panic!("this test does not know the keyword {other}"),
        }
    }

    fn holds_members(&self, words: &Map<String, Value>, (word, of): (&str, &Value), map: &Map<String, Value>) -> bool {
        let known = |name: &String| words.get("properties").is_some_and(|known| known.get(name.as_str()).is_some());
        match word {
            "required" => list(of).iter().all(|name| map.contains_key(name.as_str().expect("a name"))),
            "properties" => map.iter().all(|(name, value)| of.get(name).is_none_or(|schema| self.fits(schema, value))),
            "additionalProperties" => map.iter().all(|(name, value)| known(name) || self.fits(of, value)),
            _ => map.len() >= size(of),
        }
    }

    fn holds_text(&self, (word, of): (&str, &Value), text: &str) -> bool {
        match word {
            "minLength" => text.chars().count() >= size(of),
            "maxLength" => text.chars().count() <= size(of),
            _ => {
                let pattern = of.as_str().expect("a pattern");
                let mut patterns = self.patterns.borrow_mut();
                let regex = patterns
                    .entry(pattern.to_owned())
                    .or_insert_with(|| Regex::new(pattern).expect("a regular expression"));
                regex.is_match(text)
            }
        }
    }

    fn named(&self, reference: &Value) -> &Value {
        let pointer = reference.as_str().and_then(|text| text.strip_prefix('#')).expect("a part of this schema");
        self.root.pointer(pointer).unwrap_or_else(|| panic!("{pointer} is not defined"))
    }
}

fn list(of: &Value) -> &[Value] {
    of.as_array().expect("a list")
}

fn size(of: &Value) -> usize {
    of.as_u64().and_then(|size| usize::try_from(size).ok()).expect("a size")
}

fn is_of(name: &Value, value: &Value) -> bool {
    match name.as_str().expect("the name of a type") {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        // However it is written: 2.0 is one.
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        other => panic!("this test does not know the type {other}"),
    }
}
