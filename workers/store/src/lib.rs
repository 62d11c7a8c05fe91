//! The SQL store: ledger, session registry, commits, journal, leases, tokens, definitions,
//! conversations and memories. SQLite serves the embedded fleet, PostgreSQL a fleet of processes: two
//! implementations of the same ports under the same contract suites, which share what is pure.

mod accepting;
mod action_row;
mod batch;
mod columns;
mod committing;
mod defining;
mod judge;
mod migrate;
mod open;
mod postgres;
mod remembering;
mod sqlite;
mod talking;

pub use open::{OpenError, OpenOptions, Versions};
pub use postgres::PostgresStore;
pub use sqlite::SqliteStore;
