//! Room for the write-ahead log, made before it is needed. A commit that makes a file longer waits
//! for the file system's own journal as well; one within its length waits for its data only.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// As long as the log gets before it begins anew (see `checkpoint`).
const RESERVED_BYTES: usize = 16 << 20;
const PIECE_BYTES: usize = 1 << 20;

/// Fills a log that does not exist yet with zeros, which SQLite takes for an empty log: they are not
/// the magic number of one (the WAL file format of SQLite, section 1.2). Without room on the disk
/// there is less of it, or none; the store works all the same.
pub(super) fn reserve(database: &Path) {
    if let Err(error) = fill(database) {
        tracing::debug!(%error, path = %database.display(), "no room was made for the store's log");
    }
}

/// Whether the database has a log beside it.
pub(super) fn has_log(database: &Path) -> bool {
    log_of(database).exists()
}

fn fill(database: &Path) -> io::Result<()> {
    // Never over a log that is there: it may hold commits.
    let mut file = match OpenOptions::new().write(true).create_new(true).open(log_of(database)) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        opened => opened?,
    };
    // As SQLite does: whoever may use the database may use its log, and nobody else.
    let of = std::fs::metadata(database)?;
    file.set_permissions(Permissions::from_mode(of.mode() & 0o777))?;
    // Allowed to root only, who is the one that needs it.
    let _ = fchown(&file, Some(of.uid()), Some(of.gid()));
    // The last of the disk is worth more to the database than to its log.
    write_zeros(&mut file).or_else(|error| file.set_len(0).and(Err(error)))
}

fn write_zeros(file: &mut File) -> io::Result<()> {
    let piece = vec![0; PIECE_BYTES];
    for _ in 0..RESERVED_BYTES / PIECE_BYTES {
        file.write_all(&piece)?;
    }
    file.sync_all()
}

/// Beside the file itself, as SQLite has it, if `database` is a link to it.
fn log_of(database: &Path) -> PathBuf {
    let mut name = database.canonicalize().unwrap_or_else(|_| database.to_owned()).into_os_string();
    name.push("-wal");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_is_there_is_left_as_it_is() {
        let directory = tempfile::tempdir().expect("a directory");
        let database = directory.path().join("ledger.db");
        std::fs::write(&database, "").expect("a database");
        std::fs::set_permissions(&database, Permissions::from_mode(0o600)).expect("permissions");
        reserve(&database);
        let log = log_of(&database);
        let made = std::fs::metadata(&log).expect("a log");
        assert_eq!((made.len(), made.mode() & 0o777), (RESERVED_BYTES as u64, 0o600));
        std::fs::write(&log, "commits").expect("a write");
        reserve(&database);
        assert_eq!(std::fs::read(&log).expect("a log"), b"commits");
    }
}
