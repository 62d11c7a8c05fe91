//! Pieces of a reply on their way to those who listen to the conversation.

use std::sync::{Mutex, PoisonError};

use domain::chat::{ChatDelta, ProviderCallRecord};
use domain::conversation::stream;
use domain::ports::{ConversationKey, DeltaSink, Live, News};
use schemas::id::{Epoch, MessageId, TurnId};

/// Text that is kept of a reply in case it is cut short, bytes.
const SAID_BYTES_MAX: usize = schemas::limits::TEXT_BYTES_MAX;

pub(super) struct Streaming<'l> {
    live: &'l dyn Live,
    key: ConversationKey,
    turn_id: TurnId,
    message_id: MessageId,
    /// Of whoever asks: owners before may have told pieces of the same message.
    epoch: Epoch,
    /// The attempt that is under way, and what it has said.
    said: Mutex<(u32, String)>,
    /// Of the call, if it was dropped.
    used: Mutex<Option<ProviderCallRecord>>,
}

impl<'l> Streaming<'l> {
    pub fn new(live: &'l dyn Live, key: ConversationKey, turn_id: TurnId, message_id: MessageId, epoch: Epoch) -> Self {
        let (said, used) = (Mutex::new((0, String::new())), Mutex::default());
        Self { live, key, turn_id, message_id, epoch, said, used }
    }

    /// What the latest attempt has said so far.
    pub fn said(&self) -> String {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }

    /// What the call has used, once it was dropped.
    pub fn used(&self) -> Option<ProviderCallRecord> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl DeltaSink for Streaming<'_> {
    fn delta(&self, attempt: u32, index: u64, delta: ChatDelta) {
        if let ChatDelta::Text { text, .. } = &delta {
            let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
            if said.0 != attempt {
                *said = (attempt, String::new());
            }
            if said.1.len() + text.len() <= SAID_BYTES_MAX {
                said.1.push_str(text);
            }
        }
        let (turn_id, message_id) = (self.turn_id.clone(), self.message_id.clone());
        let attempt = stream::attempt(self.epoch, attempt);
        self.live.tell(&self.key, News::Delta { turn_id, message_id, attempt, index, delta });
    }

    fn retract(&self, attempt: u32) {
        let (turn_id, message_id) = (self.turn_id.clone(), self.message_id.clone());
        let attempt = stream::attempt(self.epoch, attempt);
        self.live.tell(&self.key, News::Retract { turn_id, message_id, attempt });
    }

    fn dropped(&self, record: ProviderCallRecord) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Some(record);
    }
}

#[cfg(test)]
mod tests {
    use schemas::id::{ConversationId, Namespace};
    use testkit::fake::LocalLive;

    use super::*;

    fn streaming(live: &LocalLive, epoch: i64) -> Streaming<'_> {
        let conversation_id = ConversationId::parse("c1").unwrap();
        let key = ConversationKey { namespace: Namespace::default_ns(), conversation_id };
        let (turn_id, message_id) = (TurnId::parse("t1").unwrap(), MessageId::parse("t1.m1").unwrap());
        Streaming::new(live, key, turn_id, message_id, Epoch(epoch))
    }

    fn text(text: &str) -> ChatDelta {
        ChatDelta::Text { part: 0, text: text.into() }
    }

    #[test]
    fn the_next_owner_counts_on_and_knows_only_what_it_heard() {
        let live = LocalLive::default();
        let (one, two) = (streaming(&live, 1), streaming(&live, 2));
        one.delta(1, 0, text("a d"));
        one.retract(1);
        one.delta(2, 0, text("a dog"));
        two.delta(1, 0, text("a cat"));
        two.retract(1);
        let attempt = |news: News| match news {
            News::Delta { attempt, .. } | News::Retract { attempt, .. } => attempt,
            News::Logged => panic!("nothing was logged"),
        };
        let told: Vec<u32> = live.told().into_iter().map(|(_, news)| attempt(news)).collect();
        let [dead, retracted, again, anew, void] = told[..] else { panic!("{told:?}") };
        assert_eq!((dead, anew), (retracted, void));
        assert!(dead < again && again < anew, "{told:?}");
        assert_eq!((one.said(), two.said()), ("a dog".to_owned(), "a cat".to_owned()));
    }
}
