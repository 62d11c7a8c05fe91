//! Mappings of fields: from field of the target to field of the source (SPEC W-TOOL-05).

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Copies fields by their paths; what the source does not have is left out. Array elements are named
/// by their index. The empty path is the whole, on both sides.
pub fn mapped(mapping: &BTreeMap<String, String>, source: &Value) -> Value {
    let mut target = Map::new();
    for (to, from) in mapping {
        let Some(value) = get(source, from.strip_prefix("$.").unwrap_or(from)) else { continue };
        if to.is_empty() {
            return value.clone();
        }
        put(&mut target, to, value.clone());
    }
    Value::Object(target)
}

/// A mapping of the input of a tool: its paths may begin with `input.`, which is what they are of.
pub(super) fn of_input(mapping: &BTreeMap<String, String>, input: &Value) -> Value {
    let plain = mapping.iter().map(|(to, from)| {
        let from = from.strip_prefix("$.").unwrap_or(from);
        // A field that is called `input` is meant if there is one.
        let is_root = input.get("input").is_none();
        let from = if is_root { from.strip_prefix("input.").unwrap_or(from) } else { from };
        (to.clone(), from.to_owned())
    });
    mapped(&plain.collect(), input)
}

/// A mapping of expressions as one of paths, for expressions that are nothing but a path below `root`.
///
/// # Errors
/// The first expression that is more than that, in words.
pub(super) fn of_expressions(
    mapping: &BTreeMap<String, String>,
    root: &str,
) -> Result<BTreeMap<String, String>, String> {
    let paths = mapping.iter().map(|(to, expression)| {
        let text = expression.trim();
        let text = text.strip_prefix("$.").unwrap_or(text);
        let path = match text.strip_prefix(root) {
            Some("") => Some(""),
            Some(rest) => rest.strip_prefix('.'),
            None => None,
        };
        let is_name =
            |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || "_$".contains(c));
        // Places of a result are within `output`; what goes to `state` is for steps that follow.
        let to_output = match to.as_str() {
            "output" => "",
            to => to.strip_prefix("output.").unwrap_or(to),
        };
        match path.filter(|path| path.is_empty() || path.split('.').all(is_name)) {
            Some(path) if root == "result" => Ok((to_output.to_owned(), path.to_owned())),
            Some(path) => Ok((to.clone(), path.to_owned())),
            None => Err(format!(
                "the expression of {to} is more than a path, as in {root}.name; expressions are not run yet, go on \
                 without it"
            )),
        }
    });
    paths.collect()
}

/// The value at a path; the empty path is the whole.
fn get<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    if path.is_empty() {
        return Some(value);
    }
    path.split('.').try_fold(value, |at, name| match at {
        Value::Object(map) => map.get(name),
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        _ => None,
    })
}

/// Sets a value at a path; what stands in the way and is no object is replaced.
fn put(target: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None => _ = target.insert(path.to_owned(), value),
        Some((name, rest)) => {
            let below = target.entry(name).or_insert_with(|| Value::Object(Map::new()));
            if !below.is_object() {
                *below = Value::Object(Map::new());
            }
            if let Value::Object(below) = below {
                put(below, rest, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn mapping(value: Value) -> BTreeMap<String, String> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn fields_are_copied_by_path_and_missing_ones_left_out() {
        let source = json!({"query": "cats", "page": {"size": 5}, "tags": ["a", "b"], "none": null});
        let wanted = mapping(json!({"q": "query", "opts.limit": "input.page.size", "first": "$.tags.0",
            "opts.gone": "page.number", "nothing": "none"}));
        let expected = json!({"q": "cats", "opts": {"limit": 5}, "first": "a", "nothing": null});
        assert_eq!(of_input(&wanted, &source), expected);
    }

    #[test]
    fn a_field_called_input_is_not_mistaken_for_the_root() {
        let wanted = mapping(json!({"text": "input.text"}));
        assert_eq!(of_input(&wanted, &json!({"text": 1})), json!({"text": 1}));
        assert_eq!(of_input(&wanted, &json!({"text": 1, "input": {"text": 2}})), json!({"text": 2}));
    }

    #[test]
    fn what_stands_in_the_way_of_a_path_is_replaced() {
        let wanted = mapping(json!({"a": "x", "a.b": "y"}));
        assert_eq!(mapped(&wanted, &json!({"x": 1, "y": 2})), json!({"a": {"b": 2}}));
    }

    #[test]
    fn expressions_that_are_paths_are_understood_and_others_told() {
        let simple = of_expressions(&mapping(json!({"q": " input.query", "all": "$.input"})), "input");
        assert_eq!(simple, Ok(mapping(json!({"q": "query", "all": ""}))));
        assert_eq!(mapped(&simple.unwrap(), &json!({"query": 1})), json!({"q": 1, "all": {"query": 1}}));
        let result = of_expressions(&mapping(json!({"output": "result.text"})), "result").unwrap();
        assert_eq!(mapped(&result, &json!({"text": "hi"})), "hi");
        for beyond in ["input.a + 1", "state.x", "inputs.a", "input[0]", "'text'"] {
            let told = of_expressions(&mapping(json!({ "q": beyond })), "input").expect_err(beyond);
            assert!(told.contains("go on without it"), "{told}");
        }
    }
}
