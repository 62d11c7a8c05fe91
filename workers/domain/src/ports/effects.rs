//! Performing effects: the only way a step reaches the world.

use async_trait::async_trait;

use crate::effect::{EffectCall, Outcome};

#[async_trait]
pub trait Effects: Send + Sync {
    /// Performs one effect, with its own bounded in-process retries. Dropping the future cancels
    /// the call. Failures are outcomes: this never panics on what the world answers.
    async fn perform(&self, call: &EffectCall) -> Outcome;

    /// Asks a call under way, by its key, to end early with what it has so far, once or several times.
    /// `false`: it goes on to its end; or it has not been polled yet, or has just ended.
    fn cut(&self, _key: &str) -> bool {
        false
    }

    /// The model provider in use, for `/health` and the banner of `up`.
    fn provider(&self) -> String;
}
