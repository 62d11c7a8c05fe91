//! What differs between two contents, field by field.

use serde_json::Value;

/// More would not be read; the rest is left out.
const CHANGES_MAX: usize = 300;

/// A field that differs. `from` is absent where it was added, `to` where it was removed.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub field: String,
    pub from: Option<Value>,
    pub to: Option<Value>,
}

/// The changes from one content to another, in the order of the fields.
pub fn diff(before: &Value, after: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    walk("", Some(before), Some(after), &mut changes);
    changes
}

fn walk(path: &str, before: Option<&Value>, after: Option<&Value>, changes: &mut Vec<Change>) {
    if before == after || changes.len() >= CHANGES_MAX {
        return;
    }
    match (before, after) {
        (Some(Value::Object(was)), Some(Value::Object(is))) => {
            let mut names: Vec<&String> = was.keys().chain(is.keys().filter(|name| !was.contains_key(*name))).collect();
            names.sort();
            for name in names {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                walk(&path, was.get(name), is.get(name), changes);
            }
        }
        // Lists of one length are compared by place; of others, people want to see the whole.
        (Some(Value::Array(was)), Some(Value::Array(is))) if was.len() == is.len() => {
            for (index, (was, is)) in was.iter().zip(is).enumerate() {
                walk(&format!("{path}[{index}]"), Some(was), Some(is), changes);
            }
        }
        _ => changes.push(Change { field: path.to_owned(), from: before.cloned(), to: after.cloned() }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(before: Value, after: Value) -> Vec<String> {
        let text = |value: Option<Value>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
        diff(&before, &after).into_iter().map(|c| format!("{} {} {}", c.field, text(c.from), text(c.to))).collect()
    }

    #[test]
    fn changes_have_paths() {
        assert_eq!(told(json!({"a": 1}), json!({"a": 1})), [""; 0]);
        assert_eq!(
            told(
                json!({"a": {"b": 1, "c": [1, {"d": 2}]}, "gone": true, "list": [1]}),
                json!({"a": {"b": 2, "c": [1, {"d": 3}]}, "new": "x", "list": [1, 2]})
            ),
            ["a.b 1 2", "a.c[1].d 2 3", "gone true -", "list [1] [1,2]", "new - \"x\""]
        );
    }

    #[test]
    fn it_ends() {
        let many = |shift: u64| Value::Array((0..10_000).map(|n| json!(n + shift)).collect());
        assert_eq!(diff(&many(0), &many(1)).len(), CHANGES_MAX);
    }
}
