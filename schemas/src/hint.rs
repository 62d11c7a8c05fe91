//! Hints of commits, worker to gateway over the broker. A hint says up to where a session is
//! committed; what was committed is in the journal.

use serde::{Deserialize, Serialize};

use crate::id::SessionKey;

/// The body of one message: many sessions of one part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hints {
    pub sessions: Vec<Hint>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hint {
    #[serde(flatten)]
    pub key: SessionKey,
    /// Offset of the last event that is committed.
    pub last_offset: u64,
}
