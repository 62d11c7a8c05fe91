//! Dead letters: what the queue could not hand to anybody. An operator looks at them, and sends
//! each back to where it came from or throws it away.

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
}

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
