//! Running actions: what tools are made of, one attempt at a time.

use async_trait::async_trait;
use serde_json::Value;

pub use crate::tool::{ActionCall, ActionFailure, Probe, Trouble};

#[async_trait]
pub trait ActionRunner: Send + Sync {
    /// Runs one attempt. Dropping the future ends it, with all that it started. The caller bounds its
    /// time and decides about further attempts; what is tried again here is invisible to it.
    ///
    /// # Errors
    /// Whether the answer stands, or another attempt may help.
    async fn run(&self, call: &ActionCall) -> Result<Value, ActionFailure>;

    /// Asks the target whether an attempt with this key happened.
    async fn probe(&self, call: &ActionCall) -> Probe {
        _ = call;
        Probe::Unknown
    }
}
