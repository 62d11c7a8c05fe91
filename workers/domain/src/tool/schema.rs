//! Values against schemas of the subset of SPEC 4.6. All breaks are told, each with its place.

use regex::RegexBuilder;
use serde_json::{Map, Value};

use crate::action::fields::kind_of;
use crate::action::hash;

/// What is wrong with a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaError {
    /// JSON pointer; empty for the value as a whole.
    pub path: String,
    /// The keyword that it breaks, in snake case.
    pub code: &'static str,
    pub message: String,
}

/// An answer to nonsense is not of its size.
const ERRORS_MAX: usize = 50;
/// Memory of one compiled pattern.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// Every break, at most fifty, in the order of the value.
pub fn check(schema: &Map<String, Value>, value: &Value) -> Vec<SchemaError> {
    let mut look = Look { errors: Vec::new(), path: String::new() };
    look.value(schema, value);
    look.errors
}

/// Breaks in words: `/query: is missing; /limit: must be ...`.
pub fn words(errors: &[SchemaError]) -> String {
    let lines = errors.iter().map(|error| match error.path.as_str() {
        "" => format!("it {}", error.message),
        path => format!("{path}: {}", error.message),
    });
    lines.collect::<Vec<_>>().join("; ")
}

/// Whether a text is a pattern that values can be held to.
///
/// # Errors
/// What is wrong with it, in words.
pub fn pattern(text: &str) -> Result<(), String> {
    compiled(text).map(drop)
}

fn compiled(text: &str) -> Result<regex::Regex, String> {
    RegexBuilder::new(text).size_limit(PATTERN_BYTES_MAX).build().map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => "it needs too much memory; make its repetitions smaller".to_owned(),
        // The parser draws the place over several lines; its last line has the reason.
        other => other.to_string().lines().last().unwrap_or_default().trim().to_owned(),
    })
}

struct Look {
    errors: Vec<SchemaError>,
    path: String,
}

impl Look {
    fn add(&mut self, code: &'static str, message: impl Into<String>) {
        if self.errors.len() < ERRORS_MAX {
            self.errors.push(SchemaError { path: self.path.clone(), code, message: message.into() });
        }
    }

    fn below(&mut self, name: &str, look: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push('/');
        self.path.push_str(&name.replace('~', "~0").replace('/', "~1"));
        look(self);
        self.path.truncate(length);
    }

    fn value(&mut self, schema: &Map<String, Value>, value: &Value) {
        if value.is_null() && schema.get("nullable") == Some(&Value::Bool(true)) {
            return;
        }
        if !self.kind(schema, value) {
            return;
        }
        self.choice(schema, value);
        match value {
            Value::String(text) => self.text(schema, text),
            Value::Number(_) => self.number(schema, value),
            Value::Array(items) => self.items(schema, items),
            Value::Object(map) => self.members(schema, map),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn kind(&mut self, schema: &Map<String, Value>, value: &Value) -> bool {
        let names: Vec<&str> = match schema.get("type") {
            None => return true,
            Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
            Some(one) => one.as_str().into_iter().collect(),
        };
        let fits = names.iter().any(|name| is_of(name, value));
        if !fits {
            self.add("type", format!("must be {}, not {}", names.join(" or "), shown(value)));
        }
        fits
    }

    fn choice(&mut self, schema: &Map<String, Value>, value: &Value) {
        if let Some(Value::Array(allowed)) = schema.get("enum")
            && !allowed.iter().any(|one| is_same(one, value))
        {
            let list: Vec<String> = allowed.iter().take(20).map(Value::to_string).collect();
            self.add("enum", format!("must be one of {}, not {}", list.join(", "), shown(value)));
        }
        if let Some(wanted) = schema.get("const")
            && !is_same(wanted, value)
        {
            self.add("const", format!("must be {wanted}, not {}", shown(value)));
        }
    }

    fn text(&mut self, schema: &Map<String, Value>, text: &str) {
        self.count(
            schema,
            ("minLength", "min_length"),
            ("maxLength", "max_length"),
            text.chars().count(),
            "characters",
        );
        let Some(pattern) = schema.get("pattern").and_then(Value::as_str) else { return };
        match compiled(pattern) {
            Ok(regex) if regex.is_match(text) => {}
            Ok(_) => self.add("pattern", format!("must match the pattern {pattern}")),
            Err(why) => self.add("pattern", format!("cannot be held to the pattern {pattern}: {why}")),
        }
    }

    fn count(
        &mut self,
        schema: &Map<String, Value>,
        (low, low_code): (&str, &'static str),
        (high, high_code): (&str, &'static str),
        count: usize,
        what: &str,
    ) {
        let bound = |name| schema.get(name).and_then(Value::as_u64);
        if let Some(min) = bound(low).filter(|min| (count as u64) < *min) {
            self.add(low_code, format!("has {count} {what}; at least {min} are needed"));
        }
        if let Some(max) = bound(high).filter(|max| count as u64 > *max) {
            self.add(high_code, format!("has {count} {what}; at most {max} are allowed"));
        }
    }

    fn number(&mut self, schema: &Map<String, Value>, value: &Value) {
        let Some(number) = value.as_f64() else { return };
        type Fits = fn(f64, f64) -> bool;
        let bounds: [(&str, &'static str, Fits, &str); 4] = [
            ("minimum", "minimum", |n, bound| n >= bound, "at least"),
            ("maximum", "maximum", |n, bound| n <= bound, "at most"),
            ("exclusiveMinimum", "exclusive_minimum", |n, bound| n > bound, "more than"),
            ("exclusiveMaximum", "exclusive_maximum", |n, bound| n < bound, "less than"),
        ];
        for (name, code, fits, words) in bounds {
            if let Some(bound) = schema.get(name).filter(|bound| !bound.as_f64().is_none_or(|b| fits(number, b))) {
                self.add(code, format!("must be {words} {bound}, not {value}"));
            }
        }
        if let Some(step) = schema.get("multipleOf").filter(|step| !is_multiple(value, step)) {
            self.add("multiple_of", format!("must be a multiple of {step}, not {value}"));
        }
    }

    fn items(&mut self, schema: &Map<String, Value>, items: &[Value]) {
        self.count(schema, ("minItems", "min_items"), ("maxItems", "max_items"), items.len(), "items");
        if schema.get("uniqueItems") == Some(&Value::Bool(true)) {
            let mut seen = std::collections::HashSet::new();
            if let Some(at) = items.iter().position(|item| !seen.insert(normal(item))) {
                self.add("unique_items", format!("must not have an item twice; item {at} was there before"));
            }
        }
        if let Some(Value::Object(each)) = schema.get("items") {
            for (index, item) in items.iter().enumerate() {
                if self.errors.len() >= ERRORS_MAX {
                    return;
                }
                self.below(&index.to_string(), |look| look.value(each, item));
            }
        }
    }

    fn members(&mut self, schema: &Map<String, Value>, map: &Map<String, Value>) {
        let properties = schema.get("properties").and_then(Value::as_object);
        let required = schema.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            if !map.contains_key(name) {
                self.below(name, |look| look.add("required", "is missing"));
            }
        }
        let others = schema.get("additionalProperties");
        for (name, value) in map {
            if self.errors.len() >= ERRORS_MAX {
                return;
            }
            match (properties.and_then(|known| known.get(name)), others) {
                (Some(Value::Object(known)), _) => self.below(name, |look| look.value(known, value)),
                (None, Some(Value::Object(other))) => self.below(name, |look| look.value(other, value)),
                (None, Some(Value::Bool(false))) => {
                    let known: Vec<&str> = properties.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
                    let message = crate::action::fields::unknown(name, &known);
                    self.below(name, |look| look.add("additional_properties", message));
                }
                _ => {}
            }
        }
    }
}

fn is_of(name: &str, value: &Value) -> bool {
    match name {
        "string" => value.is_string(),
        "number" => value.is_number(),
        // A number without a fraction is an integer, however it is written.
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "null" => value.is_null(),
        _ => false,
    }
}

fn is_multiple(value: &Value, step: &Value) -> bool {
    if let (Some(value), Some(step)) = (value.as_i64(), step.as_i64()) {
        return step == 0 || value % step == 0;
    }
    let (Some(value), Some(step)) = (value.as_f64(), step.as_f64()) else { return true };
    let quotient = value / step;
    (quotient - quotient.round()).abs() <= 1e-9 * quotient.abs().max(1.0)
}

fn is_same(a: &Value, b: &Value) -> bool {
    a == b || normal(a) == normal(b)
}

/// Equal values have equal texts: 1 and 1.0 are the same number.
fn normal(value: &Value) -> String {
    fn plain(value: &Value) -> Value {
        match value {
            Value::Number(number) => match number.as_f64() {
                Some(n) if number.is_f64() && n.fract() == 0.0 && n.abs() < 9e15 => Value::from(n as i64),
                _ => value.clone(),
            },
            Value::Array(items) => items.iter().map(plain).collect(),
            Value::Object(map) => map.iter().map(|(name, value)| (name.clone(), plain(value))).collect(),
            other => other.clone(),
        }
    }
    hash::canonical(&plain(value))
}

/// A value as people are told of it: short ones as they are.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) if text.chars().count() <= 40 => format!("{text:?}"),
        Value::Number(_) | Value::Bool(_) | Value::Null => value.to_string(),
        other => kind_of(other).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(schema: Value, value: Value) -> Vec<String> {
        let errors = check(schema.as_object().expect("an object"), &value);
        errors.into_iter().map(|error| format!("{} {}", error.path, error.code)).collect()
    }

    #[test]
    fn what_fits_passes() {
        for (schema, value) in [
            (json!({}), json!([1, "a", null])),
            (json!({"type": ["string", "null"]}), json!(null)),
            (json!({"type": "string", "nullable": true}), json!(null)),
            (json!({"type": "integer"}), json!(2.0)),
            (json!({"type": "string", "maxLength": 2, "pattern": "^ü"}), json!("üb")),
            (json!({"multipleOf": 0.1}), json!(0.3)),
            (json!({"multipleOf": 3}), json!(-9)),
            (json!({"enum": [1, "a"]}), json!(1.0)),
            (json!({"const": {"a": [1]}}), json!({"a": [1.0]})),
            (json!({"uniqueItems": true}), json!([1, "1", [1], null])),
            (json!({"additionalProperties": {"type": "integer"}, "properties": {"a": {}}}), json!({"a": "x", "b": 1})),
            // Bounds of other types do not count.
            (json!({"minLength": 5, "minimum": 3}), json!([1])),
        ] {
            assert_eq!(told(schema.clone(), value.clone()), [""; 0], "{schema} {value}");
        }
    }

    #[test]
    fn each_break_is_told_with_its_place() {
        for (schema, value, expected) in [
            (json!({"type": "string"}), json!(null), " type"),
            (json!({"type": "integer"}), json!(2.5), " type"),
            (json!({"minLength": 2}), json!("ü"), " min_length"),
            (json!({"maxLength": 1}), json!("ab"), " max_length"),
            (json!({"pattern": "^a+$"}), json!("ab"), " pattern"),
            (json!({"minimum": 2}), json!(1), " minimum"),
            (json!({"exclusiveMinimum": 2}), json!(2), " exclusive_minimum"),
            (json!({"maximum": 2}), json!(2.5), " maximum"),
            (json!({"exclusiveMaximum": 2}), json!(2), " exclusive_maximum"),
            (json!({"multipleOf": 0.1}), json!(0.35), " multiple_of"),
            (json!({"enum": ["a"]}), json!("b"), " enum"),
            (json!({"const": 1}), json!(2), " const"),
            (json!({"minItems": 1}), json!([]), " min_items"),
            (json!({"maxItems": 1}), json!([1, 2]), " max_items"),
            (json!({"uniqueItems": true}), json!([1, 1.0]), " unique_items"),
            (json!({"items": {"type": "string"}}), json!(["a", 1]), "/1 type"),
            (json!({"required": ["a/b~c"]}), json!({}), "/a~1b~0c required"),
            (json!({"additionalProperties": false}), json!({"x": 1}), "/x additional_properties"),
            (json!({"properties": {"a": {"items": {"minimum": 3}}}}), json!({"a": [3, 2]}), "/a/1 minimum"),
        ] {
            assert_eq!(told(schema.clone(), value.clone()), [expected], "{schema} {value}");
        }
    }

    #[test]
    fn all_breaks_are_told_up_to_a_bound() {
        let schema =
            json!({"type": "object", "required": ["a", "b"], "properties": {"c": {"minimum": 9, "multipleOf": 2}}});
        assert_eq!(told(schema, json!({"c": 1})), ["/a required", "/b required", "/c minimum", "/c multiple_of"]);
        let many: Vec<u32> = (0..1_000).collect();
        assert_eq!(told(json!({"items": {"type": "string"}}), json!(many)).len(), ERRORS_MAX);
    }

    #[test]
    fn patterns_stay_within_bounds() {
        assert_eq!(pattern("^[a-z]{2,8}$"), Ok(()));
        for bad in ["(?=a)b", "(a)\\1", "(?:a{1000}){1000}"] {
            assert!(pattern(bad).is_err(), "{bad}");
        }
    }
}
