//! Running actions: what tools are made of, one attempt at a time.

use async_trait::async_trait;
use serde_json::Value;

use crate::chat::ProviderCallRecord;
pub use crate::tool::{ActionCall, ActionFailure, Probe, Trouble};

#[async_trait]
pub trait ActionRunner: Send + Sync {
    /// Runs one attempt. Dropping the future ends it, with all that it started. The caller bounds its
    /// time and decides about further attempts; what is tried again here is invisible to it.
    ///
    /// # Errors
    /// Whether the answer stands, or another attempt may help.
    async fn run(&self, call: &ActionCall) -> Result<Value, ActionFailure>;

    /// The same, by a runner that may ask models: what it asks them is put on the bill.
    ///
    /// # Errors
    /// As [`Self::run`].
    async fn run_billed(&self, call: &ActionCall, bill: &dyn Bill) -> Result<Value, ActionFailure> {
        _ = bill;
        self.run(call).await
    }

    /// Asks the target whether an attempt with this key happened.
    async fn probe(&self, call: &ActionCall) -> Probe {
        _ = call;
        Probe::Unknown
    }
}

/// Takes the records of calls of models: they cost, whatever becomes of what they were made for.
pub trait Bill: Send + Sync {
    /// A call that has ended, or was dropped. It may be told while a future is dropped, so an
    /// implementation must not block, and bounds what it keeps.
    fn add(&self, record: ProviderCallRecord);
}
