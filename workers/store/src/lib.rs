//! The SQL store: ledger, session registry, commits, journal, leases, tokens, definitions,
//! conversations and memories. SQLite serves the embedded fleet, PostgreSQL a fleet of processes: two
//! implementations of the same ports under the same contract suites, which share what is pure.
//!
//! [`SqliteConversations`] is apart from all that: the durable store of the library `engine`, in a file of
//! its own.

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
pub use sqlite::{SqliteConversations, SqliteStore};
