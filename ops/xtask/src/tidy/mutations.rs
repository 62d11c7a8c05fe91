//! Mutations still fit the code they break: a patch that does not apply proves nothing.

use super::{Finding, Text};

const FOLDER: &str = "tests/mutations/";

pub fn check(files: &[Text]) -> Vec<Finding> {
    let patches = files.iter().filter(|file| file.path.starts_with(FOLDER) && file.path.ends_with(".patch"));
    patches.flat_map(|patch| check_one(patch, files)).collect()
}

fn check_one(patch: &Text, files: &[Text]) -> Vec<Finding> {
    let hunks = hunks(&patch.text);
    if hunks.is_empty() {
        return vec![Finding::new(&patch.path, 0, "changes nothing; write it as a unified diff")];
    }
    let misfit = |hunk: &&Hunk<'_>| !files.iter().any(|file| file.path == hunk.file && has(&file.text, &hunk.before));
    let misfits = hunks.iter().filter(misfit);
    misfits.map(|hunk| Finding::new(&patch.path, hunk.line, format!("does not fit {} any more", hunk.file))).collect()
}

/// One place that a patch changes.
struct Hunk<'p> {
    file: &'p str,
    /// Of the patch, from 1.
    line: usize,
    /// What must stand there.
    before: Vec<&'p str>,
}

fn hunks(patch: &str) -> Vec<Hunk<'_>> {
    let (mut hunks, mut file) = (Vec::<Hunk<'_>>::new(), "");
    for (index, line) in patch.lines().enumerate() {
        if let Some(path) = line.strip_prefix("--- a/") {
            file = path;
        } else if line.starts_with("@@ ") {
            hunks.push(Hunk { file, line: index + 1, before: Vec::new() });
        } else if let Some(hunk) = hunks.last_mut()
            && let Some(kept) = line.strip_prefix(' ').or_else(|| line.strip_prefix('-'))
        {
            hunk.before.push(kept);
        }
    }
    hunks
}

/// Whether these lines follow each other somewhere.
fn has(text: &str, wanted: &[&str]) -> bool {
    let lines: Vec<&str> = text.lines().collect();
    lines.windows(wanted.len().max(1)).any(|lines| lines == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(patch: &str) -> Vec<(String, usize)> {
        let text = |path: &str, text: &str| Text { path: path.into(), text: text.into() };
        let files = [text("a/x.rs", "one\ntwo\nthree\n\nfour\n"), text("tests/mutations/01-x.patch", patch)];
        check(&files).into_iter().map(|finding| (finding.path, finding.line)).collect()
    }

    #[test]
    fn what_fits_is_well_wherever_it_stands() {
        assert_eq!(told("--- a/a/x.rs\n+++ b/a/x.rs\n@@ -9,2 +9,2 @@\n two\n-three\n+3\n \n"), []);
    }

    #[test]
    fn what_does_not_fit_is_found_by_its_place() {
        let patch =
            "test: -p a\n--- a/a/x.rs\n+++ b/a/x.rs\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n@@ -3,2 +3,2 @@\n-tree\n+3\n";
        assert_eq!(told(patch), [("tests/mutations/01-x.patch".to_owned(), 8)]);
        assert_eq!(told(&patch.replace("x.rs", "y.rs")).len(), 2, "its file has gone");
        assert_eq!(told("nonsense"), [("tests/mutations/01-x.patch".to_owned(), 0)]);
    }
}
