//! SQLite's errors as failures: what may have happened, and whether to try again.

use domain::failure::{Certainty, Failure};

/// Primary result codes (sqlite.org/rescode.html) that mean something to us.
const ERROR: i32 = 1;
pub(super) const BUSY: i32 = 5;
pub(super) const LOCKED: i32 = 6;
pub(super) const READONLY: i32 = 8;
pub(super) const IOERR: i32 = 10;
pub(super) const CORRUPT: i32 = 11;
pub(super) const FULL: i32 = 13;
pub(super) const CANTOPEN: i32 = 14;
const TOOBIG: i32 = 18;
pub(super) const CONSTRAINT: i32 = 19;
const MISMATCH: i32 = 20;
pub(super) const NOTADB: i32 = 26;

/// `SQLITE_IOERR_SHMSIZE`: no room for the index of the log. SQLite does not call that a full disk.
const NO_ROOM_FOR_INDEX: i32 = 4874;

/// The primary result code, if the error came from SQLite itself.
pub(super) fn code(error: &sqlx::Error) -> Option<i32> {
    Some(extended(error)? & 0xff)
}

fn extended(error: &sqlx::Error) -> Option<i32> {
    error.as_database_error()?.code()?.parse().ok()
}

/// A failed statement: its transaction is rolled back, so nothing happened.
pub(super) fn failure(error: sqlx::Error) -> Failure {
    match code(&error) {
        _ if extended(&error) == Some(NO_ROOM_FOR_INDEX) => full(&error),
        Some(FULL) => full(&error),
        Some(BUSY | LOCKED | IOERR | CANTOPEN | READONLY) => {
            Failure::unavailable(format!("the store cannot be used at present: {error}"))
        }
        Some(CORRUPT | NOTADB) => {
            Failure::internal(format!("the store's file is damaged; stop, and restore it from a copy: {error}"))
        }
        _ => match error {
            sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::WorkerCrashed | sqlx::Error::Io(_) => {
                Failure::unavailable(format!("the store cannot be used at present: {error}"))
            }
            other => Failure::internal(format!("the store refused a statement: {other}")),
        },
    }
}

fn full(error: &sqlx::Error) -> Failure {
    Failure::storage_full(format!("the disk of the store is full: {error}"))
}

/// A failed COMMIT. A full disk and a busy file stop before the commit mark is written; after any
/// other error the mark may or may not be in the log.
pub(super) fn commit_failure(error: sqlx::Error) -> Failure {
    match code(&error) {
        Some(FULL | BUSY | LOCKED) => failure(error),
        // The index comes after the mark: a crash before the next commit would find it.
        _ if extended(&error) == Some(NO_ROOM_FOR_INDEX) => {
            Failure { certainty: Certainty::MayHaveHappened, ..full(&error) }
        }
        _ => Failure::in_doubt(format!("the end of a transaction is not known: {error}")),
    }
}

/// A failed script that ends with COMMIT. A value that is refused is found before the end; what the
/// disk says may concern the end itself.
pub(super) fn script_failure(error: sqlx::Error) -> Failure {
    match code(&error) {
        Some(CONSTRAINT | ERROR | TOOBIG | MISMATCH | FULL | BUSY | LOCKED) => failure(error),
        _ => commit_failure(error),
    }
}
