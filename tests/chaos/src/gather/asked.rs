//! What models were asked in conversations: a file for each process that may ask.

use std::path::Path;

use serde_json::{Value, json};

use crate::fleet::agents;
use crate::seen::talk::Asked;

/// In the order of the files and of their lines.
pub fn read(dir: &Path) -> Vec<Asked> {
    let mut files: Vec<_> = std::fs::read_dir(dir.join("run"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(agents::RECORD)))
        .collect();
    files.sort();
    let mut all = Vec::new();
    for file in files {
        let text = String::from_utf8_lossy(&std::fs::read(file).unwrap_or_default()).into_owned();
        all.extend(text.lines().filter_map(asked));
    }
    all
}

/// None for the requests of monikers, which have instructions of their own.
fn asked(line: &str) -> Option<Asked> {
    let request: Value = serde_json::from_str(line).ok()?;
    let system = request["system"].as_str().filter(|system| system.contains(agents::SYSTEM))?;
    let content = json!({
        "system": system,
        "prompt": request["prompt"],
        "results": request["results"],
        "messages": request["messages"],
        "max_tokens": request["max_tokens"],
    });
    Some(Asked { key: request["key"].as_str()?.to_owned(), content: content.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_conversations_are_found_among_others() {
        let line = |system: &str| json!({"key": "t.1", "system": system, "prompt": "hello", "messages": 2}).to_string();
        let found = asked(&line(agents::SYSTEM)).unwrap();
        assert_eq!(found.key, "t.1");
        assert!(found.content.contains("hello"));
        assert_eq!(asked(&line("You take steps.")), None);
        assert_eq!(asked("{\"key\": \"half a li"), None);
    }
}
