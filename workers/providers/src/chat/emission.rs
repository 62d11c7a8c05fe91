//! What one attempt tells, and the promise that it is taken back if the attempt dies.

use domain::chat::{ChatDelta, ChatReply};
use domain::ports::DeltaSink;

/// Dropped before [`Emission::complete`], by a failure, a timeout or a cancelled call, it retracts.
pub(crate) struct Emission<'a> {
    sink: Option<&'a dyn DeltaSink>,
    attempt: u32,
    told: u64,
    complete: bool,
}

impl<'a> Emission<'a> {
    pub fn new(sink: Option<&'a dyn DeltaSink>, attempt: u32) -> Self {
        Self { sink, attempt, told: 0, complete: false }
    }

    pub fn tell(&mut self, delta: ChatDelta) {
        if let Some(sink) = self.sink {
            sink.delta(self.attempt, self.told, delta);
            self.told += 1;
        }
    }

    /// Tells a reply that came whole, so that a listener hears of it either way.
    pub fn tell_all(&mut self, reply: &ChatReply) {
        ChatDelta::of_whole(&reply.parts, reply.usage.as_ref()).into_iter().for_each(|piece| self.tell(piece));
    }

    /// What was told stays.
    pub fn complete(mut self) {
        self.complete = true;
    }
}

impl Drop for Emission<'_> {
    fn drop(&mut self) {
        if let Some(sink) = self.sink.filter(|_| !self.complete && self.told > 0) {
            sink.retract(self.attempt);
        }
    }
}
