//! YAML as JSON values.

use anyhow::{Context, Result};
use serde_json::Value;

/// The documents of a text; empty ones are left out.
///
/// # Errors
/// It is not YAML; the text says where.
pub fn read(text: &str) -> Result<Vec<Value>> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).context("is not YAML")?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

/// Documents as one text that [`read`] takes.
///
/// # Errors
/// A value cannot be written as YAML.
pub fn write(documents: &[Value]) -> Result<String> {
    let mut text = String::new();
    for (index, document) in documents.iter().enumerate() {
        if index > 0 {
            text.push_str("---\n");
        }
        text.push_str(&serde_saphyr::to_string(document)?);
    }
    Ok(text.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn documents_are_read_as_they_were_written() {
        let text =
            "kind: tool\nid: a\nasync: true\nn: 1.5\nlist: [1, x]\n---\n---\nkind: persona\nprompt: |\n  One\n  two\n";
        let read_once = read(text).expect("YAML");
        assert_eq!(
            read_once,
            [
                json!({"kind": "tool", "id": "a", "async": true, "n": 1.5, "list": [1, "x"]}),
                json!({"kind": "persona", "prompt": "One\ntwo\n"})
            ]
        );
        let tricky =
            [json!({"a": "yes", "b": "1.0", "c": ["", "null", "- x", "a: b"], "d": {}, "e": null, "f": "x\n"})];
        assert_eq!(read(&write(&tricky).expect("written")).expect("read"), tricky);
        assert!(read("a: [").is_err());
    }
}
