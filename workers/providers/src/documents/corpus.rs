//! Lists a corpus: the names of all its documents, sorted, each once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use url::Url;

use super::glob::Glob;
use super::roots::{Roots, reason};

/// Documents of one corpus.
const FILES_MAX: usize = 200_000;
/// Depth of folders below a given one.
const DEPTH_MAX: usize = 64;

#[derive(Debug)]
pub struct Corpus {
    /// Sorted by name.
    pub entries: Vec<Entry>,
}

#[derive(Debug)]
pub struct Entry {
    /// As the paths were given, with `/`; also the cursor.
    pub name: String,
    pub place: Place,
}

#[derive(Debug, Clone)]
pub enum Place {
    File(PathBuf),
    Web(Url),
    /// Known, and not to be read; why.
    Refused(String),
}

/// Lists files, folders and addresses. Hidden files and folders are left out, folders behind
/// links are not entered.
///
/// # Errors
/// The path that does not exist or may not be read, or that the corpus is too large.
pub fn list(
    paths: &[String],
    glob: Option<&Glob>,
    roots: &Roots,
    address: impl Fn(&str) -> Result<Url, String>,
) -> Result<Corpus, String> {
    let mut found: BTreeMap<String, Place> = BTreeMap::new();
    for (number, path) in paths.iter().enumerate() {
        if path.starts_with("http://") || path.starts_with("https://") {
            let place = address(path).map_or_else(Place::Refused, Place::Web);
            found.insert(path.clone(), place);
            continue;
        }
        let start = Path::new(path.strip_prefix("file://").unwrap_or(path));
        let wrong = |problem: String| format!("payload.config.paths[{number}]: {}: {problem}", start.display());
        let real = roots.admit(start).map_err(wrong)?;
        let kind = std::fs::metadata(&real).map_err(|error| wrong(reason(&error)))?;
        if kind.is_dir() {
            let mut walk = Walk { glob, roots, top: &real, found: &mut found };
            walk.folder(&real, &name_of(start), "", 0).map_err(wrong)?;
        } else if kind.is_file() {
            found.insert(name_of(start), Place::File(real));
        } else {
            return Err(wrong("it is neither a file nor a folder".to_owned()));
        }
    }
    Ok(Corpus { entries: found.into_iter().map(|(name, place)| Entry { name, place }).collect() })
}

fn name_of(path: &Path) -> String {
    let name = path.to_string_lossy();
    let name = name.trim_end_matches('/');
    if name.is_empty() { "/".to_owned() } else { name.to_owned() }
}

struct Walk<'a> {
    glob: Option<&'a Glob>,
    roots: &'a Roots,
    /// The folder that was asked for, without links.
    top: &'a Path,
    found: &'a mut BTreeMap<String, Place>,
}

impl Walk<'_> {
    fn folder(&mut self, folder: &Path, name: &str, within: &str, depth: usize) -> Result<(), String> {
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if depth == 0 => return Err(reason(&error)),
            Err(error) => {
                self.put(format!("{}/", name.trim_end_matches('/')), Place::Refused(reason(&error)))?;
                return Ok(());
            }
        };
        for entry in entries.flatten() {
            let file = entry.file_name().to_string_lossy().into_owned();
            if file.starts_with('.') {
                continue;
            }
            let full = format!("{}/{file}", name.trim_end_matches('/'));
            let relative = if within.is_empty() { file } else { format!("{within}/{file}") };
            let Ok(kind) = entry.file_type() else { continue };
            let path = entry.path();
            if kind.is_dir() {
                if depth < DEPTH_MAX {
                    self.folder(&path, &full, &relative, depth + 1)?;
                }
            } else if self.glob.is_none_or(|glob| glob.matches(&relative)) {
                if kind.is_file() {
                    self.put(full, Place::File(path))?;
                } else if kind.is_symlink() && !path.is_dir() {
                    self.link(full, &path)?;
                }
            }
        }
        Ok(())
    }

    /// A link to a file counts as the file, unless that one is in the folder anyway.
    fn link(&mut self, name: String, path: &Path) -> Result<(), String> {
        match self.roots.admit(path) {
            Ok(real) if real.is_file() && !real.starts_with(self.top) => self.put(name, Place::File(real)),
            Ok(_) => Ok(()),
            Err(reason) => self.put(name, Place::Refused(reason)),
        }
    }

    fn put(&mut self, name: String, place: Place) -> Result<(), String> {
        if self.found.len() == FILES_MAX {
            return Err(format!(
                "there are more than {FILES_MAX} documents; narrow them down with payload.config.glob"
            ));
        }
        self.found.insert(name, place);
        Ok(())
    }
}
