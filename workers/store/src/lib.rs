//! The SQL store: ledger, session registry, commits, journal, leases and tokens. SQLite serves the
//! embedded fleet; every port is implemented in a file of its own, so that another database can
//! stand beside it under the same traits and the same contract suites.

mod sqlite;

pub use sqlite::{OpenError, OpenOptions, SqliteStore};
