//! The data directory of an embedded fleet: made if absent, probed for writing, and locked, so
//! that two processes never work on the same files.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const LOCK_FILE: &str = "lock";

/// Why a data directory cannot be used. Each text names the path and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    #[error("{path} is a file; --data-dir wants a directory", path = .0.display())]
    NotADirectory(PathBuf),
    #[error("cannot create the data directory {path}: {cause}; choose another one with --data-dir", path = .0.display(), cause = .1)]
    NotCreated(PathBuf, std::io::Error),
    #[error("cannot write to the data directory {path}: {cause}; make it writable for this user, or choose another one with --data-dir", path = .0.display(), cause = .1)]
    NotWritable(PathBuf, std::io::Error),
    #[error(
        "the data directory {path} is in use by {holder}; stop that one first, or choose another directory with --data-dir", path = .path.display()
    )]
    InUse { path: PathBuf, holder: String },
}

/// The locked data directory. The lock ends with the process, however that ends.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    _lock: File,
}

impl DataDir {
    /// Makes (mode 0700) and locks the directory.
    ///
    /// # Errors
    /// See [`DataDirError`].
    pub fn lock(path: &Path) -> Result<Self, DataDirError> {
        make(path)?;
        let refuse = |cause| DataDirError::NotWritable(path.to_owned(), cause);
        let mut file = open_lock(path).map_err(refuse)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(DataDirError::InUse { path: path.to_owned(), holder: holder(&mut file) });
            }
            Err(TryLockError::Error(cause)) => return Err(refuse(cause)),
        }
        // Also the probe for writing: it fails here, before anything is opened, on a full disk.
        write_pid(&mut file).map_err(refuse)?;
        let path = path.canonicalize().map_err(refuse)?;
        Ok(Self { path, _lock: file })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The process that holds the directory, if any does. Changes nothing.
pub fn holder_of(path: &Path) -> Option<String> {
    let mut file = File::open(path.join(LOCK_FILE)).ok()?;
    match file.try_lock_shared() {
        Ok(()) => None,
        Err(TryLockError::WouldBlock) => Some(holder(&mut file)),
        Err(TryLockError::Error(_)) => None,
    }
}

fn make(path: &Path) -> Result<(), DataDirError> {
    match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => Ok(()),
        Ok(_) => Err(DataDirError::NotADirectory(path.to_owned())),
        Err(_) => fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(|cause| DataDirError::NotCreated(path.to_owned(), cause)),
    }
}

fn open_lock(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    // Never truncated on opening: the holder's process id is in there.
    options.create(true).truncate(false).read(true).write(true).mode(0o600).open(path.join(LOCK_FILE))
}

fn write_pid(file: &mut File) -> std::io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())?;
    file.sync_all()
}

fn holder(file: &mut File) -> String {
    let mut text = String::new();
    let read = file.read_to_string(&mut text);
    match (read, text.trim().parse::<u32>()) {
        (Ok(_), Ok(pid)) => format!("process {pid}"),
        _ => "another process".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("stepfleet-host-{}-{name}", std::process::id()));
        drop(fs::remove_dir_all(&path));
        path
    }

    #[test]
    fn the_second_one_is_told_who_holds_it() {
        let path = scratch("two");
        let first = DataDir::lock(&path).unwrap();
        let error = DataDir::lock(&path).unwrap_err().to_string();
        assert!(error.contains(&format!("in use by process {}", std::process::id())), "{error}");
        assert!(holder_of(&path).is_some());
        drop(first);
        assert!(holder_of(&path).is_none());
        DataDir::lock(&path).unwrap();
        fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn a_file_is_no_directory() {
        let path = scratch("file");
        fs::write(&path, "x").unwrap();
        assert!(matches!(DataDir::lock(&path), Err(DataDirError::NotADirectory(_))));
        assert!(matches!(DataDir::lock(&path.join("below")), Err(DataDirError::NotCreated(..))));
        fs::remove_file(&path).unwrap();
    }
}
