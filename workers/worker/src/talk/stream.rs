//! Pieces of a reply on their way to those who listen to the conversation.

use std::sync::{Mutex, PoisonError};

use domain::chat::ChatDelta;
use domain::ports::{ConversationKey, DeltaSink, Live, News};
use schemas::id::{MessageId, TurnId};

/// Text that is kept of a reply in case it is cut short, bytes.
const SAID_BYTES_MAX: usize = schemas::limits::TEXT_BYTES_MAX;

pub(super) struct Streaming<'l> {
    live: &'l dyn Live,
    key: ConversationKey,
    turn_id: TurnId,
    message_id: MessageId,
    /// The attempt that is under way, and what it has said.
    said: Mutex<(u32, String)>,
}

impl<'l> Streaming<'l> {
    pub fn new(live: &'l dyn Live, key: ConversationKey, turn_id: TurnId, message_id: MessageId) -> Self {
        Self { live, key, turn_id, message_id, said: Mutex::new((0, String::new())) }
    }

    /// What the latest attempt has said so far.
    pub fn said(&self) -> String {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
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
        self.live.tell(&self.key, News::Delta { turn_id, message_id, attempt, index, delta });
    }

    fn retract(&self, attempt: u32) {
        let (turn_id, message_id) = (self.turn_id.clone(), self.message_id.clone());
        self.live.tell(&self.key, News::Retract { turn_id, message_id, attempt });
    }
}
