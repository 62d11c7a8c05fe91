//! A JSON Schema of somebody else as one that is checked here. What is not checked is left out and told:
//! the server checks its own input, so a schema that promises less costs a hint, no safety.

use schemas::limits::{SCHEMA_DEPTH_MAX, SCHEMA_NODES_MAX};
use serde_json::{Map, Value, json};

use crate::definition::schema::{KEYWORDS, pattern};

/// Schemas that are looked into: few enough for what is left of the others to pass, too.
const NODES_MAX: usize = SCHEMA_NODES_MAX / 2;
/// Said of the whole, or read already where something refers to it.
const SILENT: [&str; 5] = ["$defs", "definitions", "$id", "$anchor", "$ref"];

/// The schema of a tool's input, and the places of what was left out.
pub(super) fn schema(theirs: &Value) -> (Map<String, Value>, Vec<String>) {
    let mut walk = Walk { root: theirs, left_out: Vec::new(), nodes: 0 };
    let mut ours = walk.schema("", theirs, 1);
    // Models give the input of a tool as an object.
    ours.insert("type".to_owned(), json!("object"));
    (ours, walk.left_out)
}

struct Walk<'s> {
    root: &'s Value,
    left_out: Vec<String>,
    nodes: usize,
}

impl<'s> Walk<'s> {
    fn schema(&mut self, path: &str, theirs: &'s Value, depth: usize) -> Map<String, Value> {
        self.nodes += 1;
        // `true` allows anything, and so does what is no schema at all.
        let Some(theirs) = theirs.as_object() else { return Map::new() };
        // What refers to itself would have no end.
        if depth >= SCHEMA_DEPTH_MAX || self.nodes > NODES_MAX {
            self.leave_out(path, "what lies deeper");
            return Map::new();
        }
        let mut ours = self.referred(path, theirs, depth);
        for (name, value) in theirs.iter().filter(|(name, _)| !SILENT.contains(&name.as_str())) {
            match self.keyword(path, name, value, depth) {
                Some(Kept::As(value)) => _ = ours.insert(name.clone(), value),
                Some(Kept::Within(more)) => {
                    // What stands beside a choice says more than what is within.
                    for (name, value) in more {
                        ours.entry(name).or_insert(value);
                    }
                }
                None => self.leave_out(path, name),
            }
        }
        ours
    }

    /// What stands for a reference.
    fn referred(&mut self, path: &str, theirs: &'s Map<String, Value>, depth: usize) -> Map<String, Value> {
        let Some(reference) = theirs.get("$ref") else { return Map::new() };
        let root = self.root;
        let found = reference.as_str().and_then(|place| place.strip_prefix('#')).and_then(|place| root.pointer(place));
        match found {
            Some(found) => self.schema(path, found, depth + 1),
            None => {
                self.leave_out(path, "$ref");
                Map::new()
            }
        }
    }

    fn keyword(&mut self, path: &str, name: &str, value: &'s Value, depth: usize) -> Option<Kept> {
        match name {
            "properties" => Some(Kept::As(self.properties(path, value.as_object()?, depth))),
            "items" => {
                value.as_object()?;
                Some(Kept::As(self.schema(&format!("{path}.items"), value, depth + 1).into()))
            }
            "additionalProperties" if value.is_object() => {
                Some(Kept::As(self.schema(&format!("{path}.additionalProperties"), value, depth + 1).into()))
            }
            "pattern" => value.as_str().filter(|text| pattern(text).is_ok()).map(|text| Kept::As(text.into())),
            "anyOf" | "oneOf" | "allOf" => self.choice(path, name, value.as_array()?, depth).map(Kept::Within),
            _ => KEYWORDS.contains(&name).then(|| Kept::As(value.clone())),
        }
    }

    fn properties(&mut self, path: &str, theirs: &'s Map<String, Value>, depth: usize) -> Value {
        let mut ours = Map::new();
        for (name, value) in theirs {
            if self.nodes > NODES_MAX {
                self.leave_out(path, "more properties");
                break;
            }
            let shown: String = name.chars().take(64).collect();
            ours.insert(name.clone(), self.schema(&format!("{path}.{shown}"), value, depth + 1).into());
        }
        ours.into()
    }

    /// One schema that may be null, or several types with nothing else: what generators make of optional
    /// fields and of unions.
    fn choice(&mut self, path: &str, name: &str, all: &'s [Value], depth: usize) -> Option<Map<String, Value>> {
        let is_null = |one: &&Value| one["type"] == "null" && name != "allOf";
        let (nulls, others): (Vec<&Value>, Vec<&Value>) = all.iter().partition(is_null);
        let mut ours = match others.as_slice() {
            [one] => self.schema(path, one, depth + 1),
            [] => return None,
            _ if name == "allOf" => return None,
            several => {
                let is_plain = |one: &Map<String, Value>| {
                    one.keys().all(|key| matches!(key.as_str(), "type" | "title" | "description"))
                };
                let plain =
                    several.iter().map(|one| one.as_object().filter(|one| is_plain(one))?.get("type")?.as_str());
                let names: Vec<&str> = plain.collect::<Option<_>>()?;
                Map::from_iter([("type".to_owned(), json!(names))])
            }
        };
        if !nulls.is_empty() {
            ours.insert("nullable".to_owned(), true.into());
        }
        Some(ours)
    }

    fn leave_out(&mut self, path: &str, what: &str) {
        let shown: String = what.chars().take(64).collect();
        let place = format!("{path}.{shown}");
        let place = place.trim_start_matches('.').to_owned();
        // Within what repeats, the same place comes again.
        if self.left_out.len() < NODES_MAX && !self.left_out.contains(&place) {
            self.left_out.push(place);
        }
    }
}

/// What is kept of a keyword.
enum Kept {
    As(Value),
    /// Keywords that stand for it.
    Within(Map<String, Value>),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours(theirs: Value) -> (Value, Vec<String>) {
        let (ours, left_out) = schema(&theirs);
        (ours.into(), left_out)
    }

    #[test]
    fn what_is_checked_stays_as_it_is() {
        let sound = json!({"type": "object", "properties": {"a": {"type": ["string", "null"], "pattern": "^x"},
            "b": {"type": "array", "items": {"enum": [1]}}}, "required": ["a"], "additionalProperties": {"type": "number"}});
        assert_eq!(ours(sound.clone()), (sound, Vec::new()));
        assert_eq!(ours(json!(null)), (json!({"type": "object"}), Vec::new()));
        assert_eq!(ours(json!(true)), (json!({"type": "object"}), Vec::new()));
    }

    #[test]
    fn optional_fields_unions_and_references_are_put_in_our_words() {
        let theirs = json!({"properties": {
            "a": {"anyOf": [{"type": "string", "minLength": 1}, {"type": "null"}], "default": null, "title": "A"},
            "b": {"oneOf": [{"type": "string"}, {"type": "integer", "title": "n"}, {"type": "null"}]},
            "c": {"$ref": "#/$defs/Place", "description": "Where"},
            "d": {"allOf": [{"$ref": "#/$defs/Place"}]},
        }, "$defs": {"Place": {"type": "object", "properties": {"x": {"type": "number"}}, "description": "A place"}}});
        let place = |description: &str| json!({"type": "object", "properties": {"x": {"type": "number"}}, "description": description});
        let expected = json!({"type": "object", "properties": {
            "a": {"type": "string", "minLength": 1, "nullable": true, "default": null, "title": "A"},
            "b": {"type": ["string", "integer"], "nullable": true},
            "c": place("Where"),
            "d": place("A place"),
        }});
        assert_eq!(ours(theirs), (expected, Vec::new()));
    }

    #[test]
    fn the_rest_is_left_out_and_told() {
        let theirs = json!({"type": "object", "properties": {
            "a": {"type": "string", "pattern": "(?=x)", "contentEncoding": "base64"},
            "b": {"anyOf": [{"type": "object", "properties": {}}, {"type": "string"}]},
            "c": {"$ref": "https://example.org/schema"},
            "d": {"type": "array", "items": [{"type": "string"}]},
        }, "minProperties": 1});
        let (ours, mut left_out) = ours(theirs);
        assert_eq!(ours["properties"], json!({"a": {"type": "string"}, "b": {}, "c": {}, "d": {"type": "array"}}));
        left_out.sort();
        assert_eq!(left_out, ["a.contentEncoding", "a.pattern", "b.anyOf", "c.$ref", "d.items", "minProperties"]);
    }

    #[test]
    fn what_refers_to_itself_has_an_end() {
        let (_, left_out) = ours(json!({"$ref": "#"}));
        assert!(!left_out.is_empty());
        let list = json!({"properties": {"next": {"$ref": "#"}, "other": {"$ref": "#"}}});
        let (list, left_out) = ours(list);
        assert!(list.to_string().len() < 1 << 20 && !left_out.is_empty());
        let problems = {
            let mut problems = crate::action::fields::Problems::default();
            crate::definition::schema::check("s", list.as_object().unwrap(), &mut problems);
            problems.into_list()
        };
        assert!(problems.is_empty(), "{problems:?}");
    }
}
