//! History in LanceDB: steps, events, snapshots, memories, messages, moves and records, for good. One writer (the
//! archivist) appends large batches; any number of readers query. Nothing of LanceDB or Arrow leaves this crate.

mod append;
mod archive;
mod cells;
mod failure;
mod fsync;
mod maintain;
mod marks;
mod memories;
mod merge;
mod open;
mod predicate;
mod query;
mod s3;
mod snapshots;
mod strict;
mod table;
mod transcripts;
mod vectors;
#[cfg(test)]
mod tests;

pub use archive::LanceArchive;
pub use open::{OpenError, OpenOptions};
pub use s3::S3Settings;
