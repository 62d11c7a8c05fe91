//! Rules on Rust files: a header, a bounded length, bounded functions, no leftovers.

use super::{Finding, Text};
use crate::source::Source;

const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;
pub const MEDIAN_LINES_MAX: usize = 150;
/// Macros that say that something is not finished, or was for looking only.
const LEFTOVER_MACROS: &[&str] = &["todo!", "unimplemented!", "dbg!"];
const LEFTOVER_NOTES: &[&str] = &["FIXME", "TODO", "XXX", "HACK"];

pub fn check(file: &Text) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut add = |line, what: String| findings.push(Finding::new(&file.path, line, what));
    if !file.text.starts_with("//!") {
        add(1, "must start with a //! header that says what the file is for".into());
    }
    let lines = file.text.lines().count();
    if lines > FILE_LINES_MAX {
        add(0, format!("has {lines} lines; split it below {FILE_LINES_MAX}"));
    }
    if file.path.ends_with("/mod.rs") {
        add(0, "name it after its module instead of mod.rs".into());
    }
    let source = Source::parse(&file.text);
    for function in source.functions() {
        if function.lines > FUNCTION_LINES_MAX {
            add(
                function.line,
                format!("fn {} has {} lines; at most {FUNCTION_LINES_MAX}", function.name, function.lines),
            );
        }
    }
    for (number, line) in source.code.lines().enumerate() {
        for leftover in LEFTOVER_MACROS.iter().filter(|word| line.contains(**word)) {
            add(number + 1, format!("{leftover} must not stay"));
        }
    }
    for (number, line) in source.comments.lines().enumerate() {
        let words = line.split(|c: char| !c.is_alphanumeric());
        for leftover in words.filter(|word| LEFTOVER_NOTES.contains(word)) {
            add(number + 1, format!("{leftover} must not stay: do it, or leave it out"));
        }
    }
    findings
}

/// Lines of the middle file; 0 without files.
pub fn median_lines(files: &[&Text]) -> usize {
    let mut lines: Vec<usize> = files.iter().map(|file| file.text.lines().count()).collect();
    lines.sort_unstable();
    lines.get(lines.len() / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: impl Into<String>) -> Text {
        Text { path: path.into(), text: text.into() }
    }

    fn told(text: impl Into<String>) -> Vec<String> {
        check(&file("a/b.rs", text)).into_iter().map(|finding| format!("{}: {}", finding.line, finding.what)).collect()
    }

    #[test]
    fn a_good_file_has_no_findings() {
        assert_eq!(told("//! What it is.\n\nfn f() {\n    call(\"dbg! FIXME\");\n}\n"), [""; 0]);
    }

    #[test]
    fn each_rule_finds_its_breach() {
        assert!(told("fn f() {}\n")[0].starts_with("1: must start"));
        let long = format!("//! x\nfn f() {{\n{}}}\n", "    g();\n".repeat(70));
        assert_eq!(told(long), ["2: fn f has 72 lines; at most 70"]);
        assert!(told(format!("//! x\n{}", "\n".repeat(600)))[0].contains("601 lines"));
        let left = ["//! x\nfn f() { to", "do!() }\n// FIX", "ME later\n"].concat();
        assert_eq!(told(left).len(), 2);
        assert_eq!(check(&file("a/mod.rs", "//! x\n")).len(), 1);
    }

    #[test]
    fn the_median_is_the_middle_one() {
        let files = [file("a", "\n"), file("b", "\n\n\n"), file("c", "\n\n")];
        assert_eq!(median_lines(&files.iter().collect::<Vec<_>>()), 2);
        assert_eq!(median_lines(&[]), 0);
    }
}
