//! Live notices and news within one process.

use async_trait::async_trait;
use domain::ports::{ConversationKey, Listening, Live, News, Notice, Subscription};
use schemas::id::SessionKey;
use schemas::limits::NEWS_KEPT_MAX;

use super::rooms::{Listener, Rooms};

/// Notices kept for a slow subscriber; one that lags more reads the journal.
const NOTICES_MAX: usize = 64;

/// Cheap to clone; clones share their subscribers.
#[derive(Clone)]
pub struct EmbeddedLive {
    sessions: Rooms<SessionKey, Notice>,
    conversations: Rooms<ConversationKey, News>,
}

impl Default for EmbeddedLive {
    fn default() -> Self {
        Self { sessions: Rooms::new(NOTICES_MAX), conversations: Rooms::new(NEWS_KEPT_MAX) }
    }
}

impl EmbeddedLive {
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the subscriptions of the chosen sessions: their notices may have been lost.
    pub(crate) fn interrupt(&self, chosen: impl Fn(&SessionKey) -> bool) {
        self.sessions.interrupt(chosen);
    }

    /// Ends the listening to the chosen conversations: news of them may have been lost.
    pub(crate) fn silence(&self, chosen: impl Fn(&ConversationKey) -> bool) {
        self.conversations.interrupt(chosen);
    }
}

impl Live for EmbeddedLive {
    fn publish(&self, notices: Vec<Notice>) {
        let keys: Vec<SessionKey> = notices.iter().map(|notice| notice.key.clone()).collect();
        self.sessions.tell(keys.iter().zip(notices));
    }

    fn subscribe(&self, key: &SessionKey) -> Box<dyn Subscription> {
        Box::new(Subscribed(self.sessions.enter(key)))
    }

    fn tell(&self, key: &ConversationKey, news: News) {
        self.conversations.tell([(key, news)]);
    }

    fn listen(&self, key: &ConversationKey) -> Box<dyn Listening> {
        Box::new(Listens(self.conversations.enter(key)))
    }
}

struct Subscribed(Listener<SessionKey, Notice>);

#[async_trait]
impl Subscription for Subscribed {
    async fn next(&mut self) -> Option<Notice> {
        self.0.next().await
    }
}

struct Listens(Listener<ConversationKey, News>);

#[async_trait]
impl Listening for Listens {
    async fn next(&mut self) -> Option<News> {
        self.0.next().await
    }
}
