//! JSON Schemas that we can keep to: the subset of SPEC 4.6. A keyword outside of it is refused, not
//! ignored: a schema that promises more than is checked is worse than none.

use schemas::limits::{PATTERN_CHARS_MAX, SCHEMA_DEPTH_MAX, SCHEMA_NODES_MAX};
use serde_json::{Map, Value};

use super::parts;
use crate::action::fields::{self, Object, Problems};
use crate::tool;

const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];
const COUNTS: [(&str, &str); 2] = [("minLength", "maxLength"), ("minItems", "maxItems")];
const NUMBERS: [&str; 4] = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];
pub(super) const KEYWORDS: &[&str] = &[
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "minLength",
    "maxLength",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
    "uniqueItems",
    "enum",
    "const",
    "nullable",
    "default",
    "description",
    // Notes for readers; nothing is checked by them.
    "title",
    "examples",
    "format",
    "deprecated",
    "$schema",
    "$comment",
];

/// An optional field with a schema.
pub(super) fn field(object: &Object<'_>, name: &str, problems: &mut Problems) {
    if let Some(map) = parts::map(object, name, problems) {
        check(&object.path(name), map, problems);
    }
}

pub(super) fn check(path: &str, schema: &Map<String, Value>, problems: &mut Problems) {
    let mut walk = Walk { nodes: 0, problems };
    walk.schema(path, schema, 1);
    if walk.nodes > SCHEMA_NODES_MAX {
        problems.add(path, format!("has more than {SCHEMA_NODES_MAX} schemas within; make it smaller"));
    }
}

struct Walk<'p> {
    nodes: usize,
    problems: &'p mut Problems,
}

impl Walk<'_> {
    fn any(&mut self, path: &str, value: &Value, depth: usize) {
        match value.as_object() {
            Some(map) => self.schema(path, map, depth),
            None => {
                self.problems.add(path, format!("must be a schema, that is an object, not {}", fields::kind_of(value)))
            }
        }
    }

    fn schema(&mut self, path: &str, map: &Map<String, Value>, depth: usize) {
        self.nodes += 1;
        if depth > SCHEMA_DEPTH_MAX {
            self.problems.add(path, format!("is nested more than {SCHEMA_DEPTH_MAX} deep; make it flatter"));
            return;
        }
        if self.nodes > SCHEMA_NODES_MAX {
            return;
        }
        for name in map.keys().filter(|name| !KEYWORDS.contains(&name.as_str())) {
            if self.problems.is_full() {
                return;
            }
            let shown: String = name.chars().take(64).collect();
            let said = fields::unknown(name, KEYWORDS).replace("is not a known field", "is not a supported keyword");
            self.problems.add(format!("{path}.{shown}"), said);
        }
        let object = Object::new(path, map);
        self.kind(&object);
        self.values(&object);
        self.members(&object, depth);
        if let Some(items) = object.get("items") {
            self.any(&object.path("items"), items, depth + 1);
        }
    }

    fn kind(&mut self, object: &Object<'_>) {
        let names: Vec<&Value> = match object.get("type") {
            None => return,
            Some(Value::Array(list)) if !list.is_empty() => list.iter().collect(),
            Some(one) => vec![one],
        };
        for name in names {
            let wrong = match name.as_str() {
                Some(text) if TYPES.contains(&text) => continue,
                Some(text) => fields::not_one_of(text, &TYPES),
                None => format!("must be the name of a type, not {}", fields::kind_of(name)),
            };
            self.problems.add(object.path("type"), wrong);
        }
    }

    fn values(&mut self, object: &Object<'_>) {
        for (low, high) in COUNTS {
            let min = object.whole(low, 0, u64::from(u32::MAX), self.problems);
            let max = object.whole(high, 0, u64::from(u32::MAX), self.problems);
            if let (Some(min), Some(max)) = (min, max)
                && min > max
            {
                self.problems.add(object.path(high), format!("is below {low} ({min}): nothing could pass"));
            }
        }
        for name in NUMBERS {
            parts::decimal(object, name, f64::MIN, f64::MAX, self.problems);
        }
        let bound = |name| object.get(name).and_then(Value::as_f64);
        if let (Some(min), Some(max)) = (bound("minimum"), bound("maximum"))
            && min > max
        {
            self.problems.add(object.path("maximum"), format!("is below minimum ({min}): nothing could pass"));
        }
        if object.has("multipleOf") && bound("multipleOf").is_none_or(|step| step <= 0.0) {
            self.problems.add(object.path("multipleOf"), "must be a number above 0");
        }
        for name in ["uniqueItems", "nullable"] {
            object.boolean(name, self.problems);
        }
        object.string("description", self.problems);
        match object.get("enum") {
            None => {}
            Some(Value::Array(list)) if !list.is_empty() => {}
            Some(_) => self.problems.add(object.path("enum"), "must be an array of at least one value"),
        }
        if let Some(text) = object.string("pattern", self.problems)
            && let Err(why) = pattern(text)
        {
            self.problems.add(object.path("pattern"), format!("is no regular expression: {why}"));
        }
    }

    /// Of objects: what they have, must have, and may have besides.
    fn members(&mut self, object: &Object<'_>, depth: usize) {
        let properties = parts::map(object, "properties", self.problems);
        for (name, value) in properties.into_iter().flatten() {
            let shown: String = name.chars().take(64).collect();
            self.any(&format!("{}.{shown}", object.path("properties")), value, depth + 1);
        }
        let others = object.get("additionalProperties");
        match others {
            None | Some(Value::Bool(_)) => {}
            Some(schema) => self.any(&object.path("additionalProperties"), schema, depth + 1),
        }
        let required = parts::list(object, "required", SCHEMA_NODES_MAX, self.problems);
        for (index, value) in required.iter().enumerate() {
            let path = format!("{}[{index}]", object.path("required"));
            let Some(name) = value.as_str() else {
                self.problems.add(path, format!("must be the name of a property, not {}", fields::kind_of(value)));
                continue;
            };
            let is_known = properties.is_some_and(|properties| properties.contains_key(name));
            if !is_known && others == Some(&Value::Bool(false)) {
                let what = format!(
                    "{name:?} is required but not in properties, and no others are allowed: nothing could pass"
                );
                self.problems.add(path, what);
            }
        }
    }
}

/// Whether brackets are closed, and what repeats has something to repeat.
pub(super) fn pattern(text: &str) -> Result<(), String> {
    if text.chars().count() > PATTERN_CHARS_MAX {
        return Err(format!("it is longer than {PATTERN_CHARS_MAX} characters"));
    }
    let (mut groups, mut class, mut repeatable) = (0_usize, false, false);
    let mut chars = text.chars().enumerate();
    let mut before = None;
    while let Some((at, c)) = chars.next() {
        let previous = before.replace(c);
        match c {
            '\\' => {
                if chars.next().is_none() {
                    return Err("it ends with a single \\".to_owned());
                }
                repeatable = true;
            }
            ']' if class => (class, repeatable) = (false, true),
            _ if class => {}
            '[' => class = true,
            '(' => (groups, repeatable) = (groups + 1, false),
            ')' if groups == 0 => return Err(format!("character {at} closes a group that is not open")),
            ')' => (groups, repeatable) = (groups - 1, true),
            // `(?:` and the like begin a group.
            '?' if !repeatable && previous == Some('(') => {}
            '*' | '+' | '?' if !repeatable => return Err(format!("character {at} repeats nothing")),
            '|' | '^' => repeatable = false,
            _ => repeatable = true,
        }
    }
    match (class, groups) {
        (true, _) => Err("a [ is not closed".to_owned()),
        // What is well formed may still be beyond what is checked at run time, as looking ahead is.
        (false, 0) => tool::schema::pattern(text),
        (false, _) => Err("a ( is not closed".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(schema: Value) -> Vec<String> {
        let mut problems = Problems::default();
        check("s", schema.as_object().expect("an object"), &mut problems);
        problems.into_list().into_iter().map(|problem| format!("{}: {}", problem.field, problem.message)).collect()
    }

    #[test]
    fn sound_schemas_pass() {
        for schema in [
            json!({}),
            json!({"type": ["string", "null"], "minLength": 1, "maxLength": 9, "pattern": "^(?:a|b)+[^\\]x]*$"}),
            json!({"type": "object", "properties": {"a": {"type": "array", "items": {"enum": [1, null]}}},
                   "required": ["a", "b"], "additionalProperties": {"const": null}}),
            json!({"type": "integer", "minimum": 1, "exclusiveMaximum": 9.5, "multipleOf": 2, "nullable": true,
                   "default": 2, "description": "x", "title": "t", "format": "int32"}),
        ] {
            assert_eq!(told(schema.clone()), [""; 0], "{schema}");
        }
    }

    #[test]
    fn each_break_is_told_at_its_place() {
        for (schema, start) in [
            (json!({"type": "text"}), "s.type: \"text\" is none of"),
            (json!({"type": 7}), "s.type: must be the name"),
            (json!({"oneOf": []}), "s.oneOf: is not a supported keyword"),
            (json!({"minlength": 3}), "s.minlength: is not a supported keyword; did you mean \"minLength\"?"),
            (json!({"minLength": 3, "maxLength": 2}), "s.maxLength: is below minLength (3)"),
            (json!({"minimum": 3, "maximum": 2}), "s.maximum: is below minimum"),
            (json!({"multipleOf": 0}), "s.multipleOf: must be a number above 0"),
            (json!({"enum": []}), "s.enum: must be an array"),
            (json!({"items": true}), "s.items: must be a schema"),
            (json!({"properties": {"a": {"items": {"type": "strin"}}}}), "s.properties.a.items.type: \"strin\""),
            (json!({"properties": [1]}), "s.properties: must be an object"),
            (json!({"required": "a"}), "s.required: must be an array"),
            (json!({"required": ["a"], "properties": {}, "additionalProperties": false}), "s.required[0]: \"a\""),
            (json!({"pattern": "a("}), "s.pattern: is no regular expression: a ( is not closed"),
        ] {
            let told = told(schema.clone());
            assert!(told.iter().any(|line| line.starts_with(start)), "{schema}: {told:?}");
        }
    }

    #[test]
    fn depth_and_size_have_bounds() {
        let deep = (0..SCHEMA_DEPTH_MAX).fold(json!({}), |inner, _| json!({ "items": inner }));
        assert!(told(deep)[0].contains("nested more than"));
        let many: Map<String, Value> = (0..SCHEMA_NODES_MAX).map(|n| (n.to_string(), json!({}))).collect();
        assert!(told(json!({ "properties": many }))[0].contains("more than 2000 schemas"));
    }

    #[test]
    fn patterns_are_looked_over() {
        for good in ["", "a*", "(a|b)?", "\\(", "[(*]", "(?i:x)", "a{2,3}", "^[a-z]+$"] {
            assert_eq!(pattern(good), Ok(()), "{good}");
        }
        for bad in ["*", "(", ")", "[a", "a\\", "(*a)", "a|+", "(?=a)b", "(a)\\1", "(?:a{1000}){1000}"] {
            assert!(pattern(bad).is_err(), "{bad}");
        }
    }
}
