//! The logs of the processes: what must not be in them, and what they said at a time.

pub mod follow;

use std::path::Path;

/// A line with one of these is a finding.
const FORBIDDEN: [&str; 3] = ["panicked", "invariant broken", "invariant_broken"];
const LINES_MAX: usize = 40;
/// Begin the names of our processes, and of their logs.
const OURS: [&str; 5] = ["worker", "dispatcher", "archivist", "executor", "guest"];

/// Lines that must not be, with the name of their log.
pub fn forbidden(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for (name, text) in of_processes(dir) {
        let bad = text.lines().filter(|line| FORBIDDEN.iter().any(|word| line.contains(word)));
        found.extend(bad.take(LINES_MAX).map(|line| format!("{name}: {}", brief(line))));
    }
    found
}

/// The last lines that are more than information, for the report.
pub fn excerpts(dir: &Path, lines_max: usize) -> Vec<(String, Vec<String>, usize)> {
    let serious = |line: &&str| line.contains("ERROR") || line.contains("WARN") || line.contains("panicked");
    of_processes(dir)
        .into_iter()
        .map(|(name, text)| {
            let lines: Vec<String> = text.lines().filter(serious).map(brief).collect();
            let count = lines.len();
            (name, lines.into_iter().rev().take(lines_max).rev().collect(), count)
        })
        .collect()
}

fn of_processes(dir: &Path) -> Vec<(String, String)> {
    let mut logs: Vec<(String, String)> = std::fs::read_dir(dir.join("log"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let text = String::from_utf8_lossy(&std::fs::read(entry.path()).ok()?).into_owned();
            OURS.iter().any(|kind| name.starts_with(kind)).then_some((name, text))
        })
        .collect();
    logs.sort();
    logs
}

/// Without colours, and not longer than a line of a report.
fn brief(line: &str) -> String {
    let mut plain = String::new();
    let mut coloured = false;
    for c in line.chars() {
        match c {
            '\u{1b}' => coloured = true,
            'm' if coloured => coloured = false,
            _ if !coloured => plain.push(c),
            _ => {}
        }
    }
    plain.chars().take(400).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_taken_out() {
        assert_eq!(brief("\u{1b}[31mERROR\u{1b}[0m it failed"), "ERROR it failed");
    }
}
