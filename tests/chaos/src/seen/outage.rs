//! What was seen of outages: how clients were answered meanwhile, and what the processes said.

use serde::{Deserialize, Serialize};

/// One try to have an action accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Post {
    pub at_ms: i64,
    /// Until the answer, or until there was none.
    pub took_ms: u64,
    /// 0 without an answer.
    pub status: u16,
}

/// A time in which the broker was away, and nothing else was broken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outage {
    pub fault: String,
    pub from_ms: i64,
    pub to_ms: i64,
}

/// Warnings and errors of one process within about a second, those with the same words as one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    pub process: String,
    pub at_ms: i64,
    pub words: String,
    pub lines: u64,
    /// Each is about one session, one shard, one request: as many things, as many lines.
    pub of_one: bool,
    /// Errors, and not warnings.
    #[serde(default)]
    pub error: bool,
}
