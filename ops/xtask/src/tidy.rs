//! House rules that can be read off the files.

mod contracts;
mod files;
mod landed;
mod mutations;
mod rust;
mod words;

use std::path::Path;

use anyhow::{Result, bail};

/// One breach of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub path: String,
    /// From 1; 0 = the file as a whole.
    pub line: usize,
    pub what: String,
}

impl Finding {
    pub fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, what: what.into() }
    }
}

/// A file that was read.
#[derive(Debug, Clone)]
pub struct Text {
    /// Relative to the root, with `/`.
    pub path: String,
    pub text: String,
}

pub fn run(root: &Path) -> Result<()> {
    let files = files::read(root)?;
    let sources: Vec<&Text> = files.iter().filter(|file| file.path.ends_with(".rs")).collect();
    let mut findings: Vec<Finding> = sources.iter().flat_map(|file| rust::check(file)).collect();
    findings.extend(files.iter().flat_map(words::check));
    findings.extend(contracts::runbooks(&files));
    findings.extend(contracts::metrics(&files));
    findings.extend(contracts::recorded(&files));
    findings.extend(contracts::watched(&files));
    findings.extend(contracts::migrations(&files));
    findings.extend(landed::check(&files));
    findings.extend(mutations::check(&files));
    let median = rust::median_lines(&sources);
    if median > rust::MEDIAN_LINES_MAX {
        findings.push(Finding::new(
            ".",
            0,
            format!("the median file has {median} lines; keep it within {}", rust::MEDIAN_LINES_MAX),
        ));
    }
    for finding in &findings {
        eprintln!("{}:{}: {}", finding.path, finding.line, finding.what);
    }
    let lines: usize = sources.iter().map(|file| file.text.lines().count()).sum();
    println!("tidy: {} Rust files, {lines} lines, median {median}; {} findings", sources.len(), findings.len());
    if findings.is_empty() { Ok(()) } else { bail!("{} house rules are broken", findings.len()) }
}
