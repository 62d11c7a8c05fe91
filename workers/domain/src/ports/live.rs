//! Live notices of commits, worker to gateway. A notice is a hint: it may be lost, and a stream
//! then reads the journal. What it tells of is committed.

use std::sync::Arc;

use async_trait::async_trait;
use schemas::id::{ConversationId, MessageId, Namespace, SessionKey, TurnId};
use schemas::record::Entry;
use serde::{Deserialize, Serialize};

use crate::chat::ChatDelta;

/// One commit of one session.
#[derive(Debug, Clone)]
pub struct Notice {
    pub key: SessionKey,
    /// Offset of the last event that is committed.
    pub last_offset: u64,
    /// What was committed; within one process only. Without it, the journal has it.
    pub entry: Option<Arc<Entry>>,
}

impl Notice {
    pub fn of(key: SessionKey, entry: Arc<Entry>) -> Self {
        Self { key, last_offset: entry.head.next_offset.saturating_sub(1), entry: Some(entry) }
    }
}

/// A conversation's address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ConversationKey {
    pub namespace: Namespace,
    pub conversation_id: ConversationId,
}

/// News of one conversation. Pieces of replies are nowhere but here: who misses them has the message
/// when it is committed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum News {
    /// The log has more records: read them from where you are.
    Logged,
    /// The `index`th piece of an attempt at the message, counted from 0 without gaps. Attempts are numbered by
    /// [`crate::conversation::stream::attempt`]: a higher one voids what lower ones told.
    Delta { turn_id: TurnId, message_id: MessageId, attempt: u32, index: u64, delta: ChatDelta },
    /// What that attempt told does not count.
    Retract { turn_id: TurnId, message_id: MessageId, attempt: u32 },
}

#[async_trait]
pub trait Live: Send + Sync {
    /// Publishes notices of commits. Never blocks, never fails loudly.
    fn publish(&self, notices: Vec<Notice>);

    /// Notices from now on, of one session.
    fn subscribe(&self, key: &SessionKey) -> Box<dyn Subscription>;

    /// Tells news of a conversation, in the order of the calls. Never blocks, never fails loudly.
    fn tell(&self, key: &ConversationKey, news: News);

    /// News from now on, of one conversation.
    fn listen(&self, key: &ConversationKey) -> Box<dyn Listening>;
}

#[async_trait]
pub trait Listening: Send {
    /// The next news. `None`: some were lost or the source is gone; read the log and listen again.
    /// Cancel safe.
    async fn next(&mut self) -> Option<News>;
}

#[async_trait]
pub trait Subscription: Send {
    /// The next notice. `None`: some were lost or the source is gone; read the journal and
    /// subscribe again. Cancel safe.
    async fn next(&mut self) -> Option<Notice>;
}
