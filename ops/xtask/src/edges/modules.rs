//! Within `domain`: decisions must not see the ports, since only ports have `async`.

use std::path::Path;

use anyhow::{Context, Result};

use crate::source::Source;

/// Modules that read or check history, or recall memories, through ports; they decide nothing.
const READERS: &[&str] = &["ports", "read", "recall", "verify"];

/// One line for each use of a port or of `async` in a decision module.
pub fn check(folder: &Path) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    walk(folder, folder, &mut findings)?;
    findings.sort();
    Ok(findings)
}

fn walk(root: &Path, folder: &Path, findings: &mut Vec<String>) -> Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let relative = path.strip_prefix(root)?.to_string_lossy().into_owned();
        let module = relative.split(['/', '.']).next().unwrap_or_default();
        if READERS.contains(&module) {
            continue;
        }
        if path.is_dir() {
            walk(root, &path, findings)?;
        } else if relative.ends_with(".rs") {
            findings.extend(check_text(&relative, &std::fs::read_to_string(&path)?));
        }
    }
    Ok(())
}

fn check_text(path: &str, text: &str) -> Vec<String> {
    let code = Source::parse(text).code;
    let lines = code.lines().enumerate();
    lines
        .filter_map(|(number, line)| {
            let what = if line.contains("::ports::") || line.contains("::ports;") {
                "uses a port"
            } else if line.contains("async fn") || awaits(line) {
                "is asynchronous"
            } else if line.contains("SystemTime") || line.contains("Instant::now") {
                "reads a clock"
            } else {
                return None;
            };
            Some(format!("domain/{path}:{}: a decision module {what}", number + 1))
        })
        .collect()
}

/// `.await`, and not a method whose name begins like it.
fn awaits(line: &str) -> bool {
    line.split(".await").skip(1).any(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_are_told_from_readers() {
        assert!(check_text("a.rs", "use crate::effect::Effect; // crate::ports::Clock\n").is_empty());
        assert_eq!(check_text("a.rs", "use crate::ports::Clock;\nasync fn f() {}\n").len(), 2);
        assert_eq!(check_text("a.rs", "let now = std::time::Instant::now();\n").len(), 1);
    }
}
