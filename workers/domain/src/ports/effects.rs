//! Performing effects: the only way a step reaches the world.

use async_trait::async_trait;

use crate::effect::{EffectCall, Outcome};

#[async_trait]
pub trait Effects: Send + Sync {
    /// Performs one effect, with its own bounded in-process retries. Dropping the future cancels
    /// the call. Failures are outcomes: this never panics on what the world answers.
    async fn perform(&self, call: &EffectCall) -> Outcome;

    /// Asks a call under way, by its key, to end early with what it has so far. Calls that cannot go
    /// on to their end.
    fn cut(&self, _key: &str) {}

    /// The model provider in use, for `/health` and the banner of `up`.
    fn provider(&self) -> String;
}
