//! PostgreSQL's errors as failures: what may have happened, and whether to try again.

use domain::failure::Failure;
use sqlx::Error;

/// Conditions (postgresql.org/docs/current/errcodes-appendix.html) that mean something to us.
const DISK_FULL: &str = "53100";
const UNIQUE_VIOLATION: &str = "23505";
const SERIALIZATION_FAILURE: &str = "40001";
const DEADLOCK: &str = "40P01";
/// Classes of errors that pass: connections, resources, locks, an operator's intervention, the system.
const PASSING: [&str; 5] = ["08", "53", "55", "57", "58"];

/// The condition, if the error came from the database itself.
pub(super) fn code(error: &Error) -> Option<String> {
    Some(error.as_database_error()?.code()?.into_owned())
}

/// Whether the connection, and not what was asked of it, is what failed.
pub(super) fn is_lost(error: &Error) -> bool {
    match error {
        Error::Io(_) | Error::Tls(_) | Error::Protocol(_) | Error::WorkerCrashed | Error::PoolTimedOut => true,
        // An end of the server, or of this connection on its side.
        error => code(error).is_some_and(|code| {
            ["57P01", "57P02", "57P03", "53300"].contains(&code.as_str()) || code.starts_with("08")
        }),
    }
}

/// Whether the two sides do not agree on TLS: most often, the certificate is not one that is trusted.
pub(super) fn is_untrusted(error: &Error) -> bool {
    // A handshake that fails is an error of input and output, and only its text says which.
    matches!(error, Error::Tls(_)) || matches!(error, Error::Io(_) if error.to_string().contains("certificate"))
}

/// What met another transaction, and so may go well when it is tried once more.
pub(super) fn is_collision(error: &Error) -> bool {
    code(error).is_some_and(|code| [SERIALIZATION_FAILURE, DEADLOCK].contains(&code.as_str()))
}

/// Somebody else inserted the same key meanwhile.
pub(super) fn is_duplicate(error: &Error) -> bool {
    code(error).is_some_and(|code| code == UNIQUE_VIOLATION)
}

/// A failed statement that cannot have been committed.
pub(super) fn failure(error: Error) -> Failure {
    let Some(code) = code(&error) else {
        return match error {
            Error::ColumnDecode { .. } | Error::ColumnNotFound(_) | Error::Decode(_) | Error::Encode(_) => {
                Failure::internal(format!("the store and this program disagree: {error}"))
            }
            other => Failure::unavailable(format!("the database cannot be reached at present: {other}")),
        };
    };
    if code == DISK_FULL {
        return Failure::storage_full(format!("the disk of the database is full: {error}"));
    }
    let passes = PASSING.iter().any(|class| code.starts_with(class)) || is_collision(&error);
    match passes {
        true => Failure::unavailable(format!("the database cannot be used at present: {error}")),
        false => Failure::internal(format!("the database refused a statement: {error}")),
    }
}

/// A failed statement that commits by itself. What the database refused did not happen; when the
/// answer is missing, it may have.
pub(super) fn commit_failure(error: Error) -> Failure {
    if code(&error).is_some() && !is_lost(&error) {
        return failure(error);
    }
    match error {
        // It was never sent.
        Error::PoolTimedOut | Error::PoolClosed | Error::Encode(_) => failure(error),
        other => Failure::in_doubt(format!("the end of a transaction is not known: {other}")),
    }
}
