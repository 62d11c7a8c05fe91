//! The files of the repository, without what is built, kept or taken from others.

use std::path::Path;

use anyhow::{Context, Result};

use super::Text;

/// Neither ours nor source.
const SKIPPED_FOLDERS: &[&str] = &["target", ".git", "node_modules", "vendor", "stepfleet-data"];
/// Made by cargo; names the registry by necessity.
const SKIPPED_FILES: &[&str] = &["Cargo.lock"];

/// All text files below the root, in path order.
pub fn read(root: &Path) -> Result<Vec<Text>> {
    let mut found = Vec::new();
    walk(root, root, &mut found)?;
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

fn walk(root: &Path, folder: &Path, found: &mut Vec<Text>) -> Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = entry.path();
        let kind = entry.file_type()?;
        if kind.is_dir() && !SKIPPED_FOLDERS.contains(&name.as_str()) {
            walk(root, &path, found)?;
        } else if kind.is_file() && !SKIPPED_FILES.contains(&name.as_str()) {
            // Images and the like are not text and have nothing to check.
            if let Ok(text) = String::from_utf8(std::fs::read(&path).with_context(|| path.display().to_string())?) {
                let path = path.strip_prefix(root)?.to_string_lossy().replace('\\', "/");
                found.push(Text { path, text });
            }
        }
    }
    Ok(())
}
