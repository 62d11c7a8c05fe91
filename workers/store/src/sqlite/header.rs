//! A look at a file before SQLite opens it, because opening may already write: recovery, the
//! write-ahead log's side files, the journal mode. Layout: sqlite.org/fileformat2.html, 1.3.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// "Step" in ASCII: marks the files of fleets.
pub(super) const APPLICATION_ID: i64 = 0x5374_6570;
/// "Conv": marks those of the library.
pub(super) const LIBRARY_ID: i64 = 0x436F_6E76;

const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// The file header and the header of the first page.
const LOOK_BYTES: u64 = 112;
const APPLICATION_ID_AT: usize = 68;
const PAGE_TYPE_AT: usize = 100;
const CELLS_AT: usize = 103;
const LEAF_TABLE: u8 = 13;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Missing,
    /// No byte, or a database without any content: ours to fill.
    Blank,
    Ours,
    /// A database of another program; its application id.
    Foreign(i64),
    NotADatabase,
}

/// Reads the first bytes and writes nothing. Files with the mark `ours` are ours.
pub(super) fn look(path: &Path, ours: i64) -> std::io::Result<Kind> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Kind::Missing),
        Err(error) => return Err(error),
    };
    let mut head = Vec::new();
    file.take(LOOK_BYTES).read_to_end(&mut head)?;
    if head.is_empty() {
        return Ok(Kind::Blank);
    }
    if !head.starts_with(MAGIC) || (head.len() as u64) < LOOK_BYTES {
        return Ok(Kind::NotADatabase);
    }
    let id = number(&head[APPLICATION_ID_AT..APPLICATION_ID_AT + 4]);
    let no_tables = head[PAGE_TYPE_AT] == LEAF_TABLE && number(&head[CELLS_AT..CELLS_AT + 2]) == 0;
    Ok(match id {
        id if id == ours => Kind::Ours,
        // We set our id before anything can be in a log, so a log beside a blank file is foreign.
        0 if no_tables && !has_log(path) => Kind::Blank,
        other => Kind::Foreign(other),
    })
}

fn number(big_endian: &[u8]) -> i64 {
    big_endian.iter().fold(0, |sum, byte| sum << 8 | i64::from(*byte))
}

fn has_log(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(PathBuf::from(log)).is_ok_and(|data| data.len() > 0)
}
