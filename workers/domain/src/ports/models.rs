//! Asking models: what conversations need of the providers.

use async_trait::async_trait;

use super::Bill;
use crate::chat::{ChatCall, ChatDelta, ChatOutcome, ModelTarget, ProviderCallRecord};

#[async_trait]
pub trait Models: Send + Sync {
    /// Makes one call, with the platform's attempts and waits (SPEC W-ERR-02), and streams it into
    /// `sink` if there is one and the provider can. Dropping the future cancels the call. Failures
    /// are outcomes: this never panics on what a provider answers, and what was cut off is never a
    /// reply. The record has what all attempts used, those that brought nothing too.
    async fn chat(&self, call: &ChatCall, sink: Option<&dyn DeltaSink>) -> ChatOutcome;

    /// The model that a call of the fleet's default profile reaches, in words.
    fn provider(&self) -> String;

    /// About what so many tokens of a request cost, in the operator's currency; 0 where no price is known.
    fn cost_of_input(&self, target: &ModelTarget, tokens: u64) -> f64;
}

/// Takes the pieces of a reply as they arrive. Calls come in order, from one task, in the middle of
/// reading the answer: an implementation must not block, and bounds what it keeps.
pub trait DeltaSink: Send + Sync {
    /// The `index`th piece of an attempt, both counted without gaps: attempts from 1, pieces from 0.
    fn delta(&self, attempt: u32, index: u64, delta: ChatDelta);

    /// The attempt died after it had told something: what it told does not count. Also called when
    /// the call is cancelled in the middle.
    fn retract(&self, attempt: u32);

    /// Whether pieces are wanted; else the provider is asked for its answer as a whole, and none are told.
    fn wants_pieces(&self) -> bool {
        true
    }

    /// The call was dropped before its end, after the last piece was told or taken back: this is what it has
    /// used by then, which the provider bills all the same. Called at most once, while the future is dropped.
    fn dropped(&self, record: ProviderCallRecord) {
        drop(record);
    }
}

/// Takes no pieces of a call. If the call is dropped, what it has used goes on a bill.
pub struct Unheard<'a>(pub &'a dyn Bill);

impl DeltaSink for Unheard<'_> {
    fn delta(&self, _attempt: u32, _index: u64, _delta: ChatDelta) {}

    fn retract(&self, _attempt: u32) {}

    fn wants_pieces(&self) -> bool {
        false
    }

    fn dropped(&self, record: ProviderCallRecord) {
        self.0.add(record);
    }
}
