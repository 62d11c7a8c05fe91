//! What one attempt tells, and the promise that it is taken back if the attempt dies.

use domain::chat::{ChatDelta, ChatReply, Usage};
use domain::ports::DeltaSink;

use super::meter::Meter;
use crate::call::{CallError, Class};

/// Dropped before [`Emission::complete`], by a failure, a timeout or a cancelled call, it retracts, and puts down
/// what the attempt has used.
pub(crate) struct Emission<'a> {
    sink: Option<&'a dyn DeltaSink>,
    meter: &'a Meter<'a>,
    attempt: u32,
    told: u64,
    /// As far as the provider has told it.
    usage: Option<Usage>,
    /// Characters of all pieces.
    chars: u64,
    end: End,
}

#[derive(PartialEq)]
enum End {
    BrokeOff,
    Reply,
    /// The provider did not take it up, and bills nothing.
    Refused,
}

impl<'a> Emission<'a> {
    /// Of the next attempt.
    pub fn new(sink: Option<&'a dyn DeltaSink>, meter: &'a Meter<'a>) -> Self {
        Self { sink, meter, attempt: meter.begin(), told: 0, usage: None, chars: 0, end: End::BrokeOff }
    }

    pub fn tell(&mut self, delta: ChatDelta) {
        match &delta {
            ChatDelta::Text { text, .. } | ChatDelta::Reasoning { text, .. } => self.count(text),
            ChatDelta::ToolCall { name, arguments, .. } => {
                self.count(name.as_deref().unwrap_or_default());
                self.count(arguments);
            }
            ChatDelta::Usage { usage } => self.usage = Some(usage.clone()),
        }
        if let Some(sink) = self.sink {
            sink.delta(self.attempt, self.told, delta);
            self.told += 1;
        }
    }

    fn count(&mut self, text: &str) {
        self.chars += text.chars().count() as u64;
    }

    /// Tells a reply that came whole, so that a listener hears of it either way.
    pub fn tell_all(&mut self, reply: &ChatReply) {
        ChatDelta::of_whole(&reply.parts, reply.usage.as_ref()).into_iter().for_each(|piece| self.tell(piece));
    }

    /// What was told stays.
    pub fn complete(mut self) {
        self.end = End::Reply;
    }

    /// There is no reply. Who was not reached, or says no instead of beginning to answer, bills nothing; an answer
    /// that broke off, or that did not come in time, was worked on.
    pub fn fail(mut self, error: &CallError) {
        let is_taken = error.status.is_none_or(|status| (200..300).contains(&status));
        let has_begun = self.usage.is_some() || self.chars > 0;
        let broke_off = matches!(error.class, Class::Cut | Class::Timeout);
        if !(error.sent && is_taken && (has_begun || broke_off)) {
            self.end = End::Refused;
        }
    }
}

impl Drop for Emission<'_> {
    fn drop(&mut self) {
        if self.end == End::Reply {
            return;
        }
        if let Some(sink) = self.sink.filter(|_| self.told > 0) {
            sink.retract(self.attempt);
        }
        if self.end == End::BrokeOff {
            self.meter.lose(self.attempt, self.usage.take(), self.chars);
        }
    }
}
