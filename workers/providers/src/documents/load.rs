//! Reads one file.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use super::roots::{Roots, reason};
use super::{DOCUMENT_BYTES_MAX, Read, text};

/// Reads a file that was listed before. It may have changed since, so all checks are made again.
pub fn load(path: &Path, roots: &Roots) -> Read {
    match read(path, roots) {
        Ok((bytes, size)) => {
            let truncated = size > bytes.len() as u64;
            match text::of(&bytes, path.to_str().unwrap_or("")) {
                Ok(text) => Read::Text { text, bytes: size, truncated },
                Err(reason) => Read::Skipped { reason: reason.to_owned(), bytes: size },
            }
        }
        Err(reason) => Read::Skipped { reason, bytes: 0 },
    }
}

fn read(path: &Path, roots: &Roots) -> Result<(Vec<u8>, u64), String> {
    let real = roots.admit(path)?;
    // Opening a pipe would wait for a writer: look first.
    let kind = std::fs::metadata(&real).map_err(|error| reason(&error))?;
    if !kind.is_file() {
        return Err("it is no regular file".to_owned());
    }
    let file = File::open(&real).map_err(|error| reason(&error))?;
    // Between the check and the opening a folder may have become a link.
    if roots.admit(&real)? != real {
        return Err("it was moved while it was opened".to_owned());
    }
    let size = file.metadata().map_err(|error| reason(&error))?.len();
    let mut bytes = Vec::with_capacity(size.min(DOCUMENT_BYTES_MAX as u64) as usize);
    file.take(DOCUMENT_BYTES_MAX as u64).read_to_end(&mut bytes).map_err(|error| reason(&error))?;
    let size = size.max(bytes.len() as u64);
    Ok((bytes, size))
}
