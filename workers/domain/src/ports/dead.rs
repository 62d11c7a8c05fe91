//! Dead letters: what the queue could not hand to anybody. An operator looks at them, and sends
//! each back to where it came from or throws it away.

use std::sync::Arc;

use async_trait::async_trait;

use crate::failure::Failure;

#[async_trait]
pub trait DeadLetters: Send + Sync {
    /// The oldest dead letters, at most `limit`. Looking changes nothing.
    async fn list(&self, limit: usize) -> Result<Vec<DeadLetter>, Failure>;

    async fn get(&self, id: &str) -> Result<Option<DeadLetter>, Failure>;

    /// Sends a dead letter back to its origin, then removes it. `false`: there is none of this id.
    /// After a failure in between it may be in both places: the ledger recognises the repeat.
    async fn redrive(&self, id: &str) -> Result<bool, Failure>;

    /// Throws a dead letter away. `false`: there is none of this id.
    async fn discard(&self, id: &str) -> Result<bool, Failure>;

    /// Does one thing with all that lie there now, the oldest first, and tells on the way how far it is. What was
    /// not done before a failure, or before nobody waits for the answer any more, is left; a few of those that were
    /// to be sent back may then be in both places, with the same message id.
    async fn sweep(&self, sweep: Sweep, told: Told) -> Result<Swept, Failure>;
}

/// What becomes of a dead letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// It goes back to where it died.
    Redrive,
    Discard,
}

/// What to do with all of them.
#[derive(Debug, Clone)]
pub struct Sweep {
    pub deed: Deed,
    /// Only with those whose reason has this text in it.
    pub reason: Option<String>,
}

impl Sweep {
    pub fn means(&self, letter: &DeadLetter) -> bool {
        self.reason.as_ref().is_none_or(|text| letter.reason.contains(text.as_str()))
    }
}

/// How far it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    pub done: u64,
    /// Left where they are: others were meant.
    pub kept: u64,
    /// Left where they are: the queue that they would go back to is gone.
    pub stuck: u64,
}

/// Called every now and then.
pub type Told = Arc<dyn Fn(Swept) + Send + Sync>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// Stable for as long as the letter lies there.
    pub id: String,
    /// Why it died: what the consumer said, else the broker's own reason.
    pub reason: String,
    /// The queue it died in.
    pub origin: String,
    pub body: Vec<u8>,
    /// When it died, in milliseconds since 1970; 0 if nobody noted it.
    pub at_ms: i64,
    /// What came with it, as text.
    pub headers: Vec<(String, String)>,
}
