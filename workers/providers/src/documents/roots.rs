//! Which folders may be read. Paths are compared after links are followed, so a link cannot lead
//! out of what is allowed.

use std::path::{Path, PathBuf};

#[derive(Debug)]
pub struct Roots {
    /// Without links; `None` = wherever the process may read.
    allowed: Option<Vec<PathBuf>>,
}

impl Roots {
    /// # Errors
    /// Each allowed folder that does not exist.
    pub fn new(allow_paths: Option<&[PathBuf]>) -> Result<Self, Vec<String>> {
        let Some(paths) = allow_paths else { return Ok(Self { allowed: None }) };
        let mut problems = Vec::new();
        let mut allowed = Vec::new();
        for path in paths {
            match path.canonicalize() {
                Ok(path) => allowed.push(path),
                Err(error) => problems.push(format!("allow_paths: {}: {error}", path.display())),
            }
        }
        if problems.is_empty() { Ok(Self { allowed: Some(allowed) }) } else { Err(problems) }
    }

    /// The path without links, if it may be read.
    ///
    /// # Errors
    /// Why not, in words.
    pub fn admit(&self, path: &Path) -> Result<PathBuf, String> {
        let real = path.canonicalize().map_err(|error| reason(&error))?;
        match &self.allowed {
            Some(allowed) if !allowed.iter().any(|root| real.starts_with(root)) => {
                Err("it is outside the folders that may be read (STEPFLEET_ALLOW_PATHS)".to_owned())
            }
            _ => Ok(real),
        }
    }
}

/// An error of the file system, in words that fit into a sentence.
pub fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "it does not exist".to_owned(),
        std::io::ErrorKind::PermissionDenied => "it may not be read by this process".to_owned(),
        _ => format!("it cannot be read: {error}"),
    }
}
