//! What was seen of steps where they are committed, and where they are run: the journal of the database,
//! read while it lasts, and the notes of the workers.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Journal {
    /// Rows that were read, and those that were trimmed before anybody had looked.
    pub rows: u64,
    pub missed: u64,
    pub commits: Vec<Commits>,
    pub ran: Vec<Ran>,
}

/// Steps of one session that follow each other and were committed in one term of its shard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commits {
    pub shard: u64,
    pub epoch: i64,
    pub session: String,
    /// Iterations, both of them included.
    pub first: u64,
    pub last: u64,
    /// Places in the journal of the shard, which are in the order of commits.
    pub from_seq: u64,
    pub to_seq: u64,
}

/// Steps of one session that one process ran one after the other. What was run need not be committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ran {
    /// Its name, and which start of it.
    pub process: String,
    pub session: String,
    pub first: u64,
    pub last: u64,
}
