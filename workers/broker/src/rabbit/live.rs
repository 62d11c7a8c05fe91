//! Live notices over the broker: of commits only hints travel, of conversations the news, from any
//! worker to the gateways that watch. Within this process both go from hand to hand.

mod hear;
mod interest;
mod news;
mod tell;

use async_trait::async_trait;
use domain::ports::{ConversationKey, Listening, Live, News, Notice, Subscription};
use domain::shard::{event_part, news_part};
use schemas::hint::Hint;
use schemas::id::SessionKey;
use tokio::sync::mpsc;

use super::link::Link;
use super::troubles::Troubles;
use crate::embedded::EmbeddedLive;
use interest::{Held, Interest, Topic};
use news::Newsroom;

/// Hints that wait to be sent; what does not fit is dropped.
const HINTS_MAX: usize = 4_096;

pub struct RabbitLive {
    local: EmbeddedLive,
    interest: Interest,
    hints: mpsc::Sender<Hint>,
    newsroom: Newsroom,
}

impl RabbitLive {
    pub(super) fn new(publishing: Link, consuming: Link, troubles: Troubles) -> Self {
        let (hints, told) = mpsc::channel(HINTS_MAX);
        let (local, interest) = (EmbeddedLive::new(), Interest::default());
        let newsroom = Newsroom::open(publishing.clone());
        tokio::spawn(tell::run(publishing, told));
        let ears = hear::Ears { local: local.clone(), this_process: newsroom.sender() };
        tokio::spawn(hear::run(consuming, ears, interest.watch(), troubles));
        Self { local, interest, hints, newsroom }
    }
}

impl Live for RabbitLive {
    fn publish(&self, notices: Vec<Notice>) {
        for notice in &notices {
            // Full or without a task: a hint may be lost.
            let _ = self.hints.try_send(Hint { key: notice.key.clone(), last_offset: notice.last_offset });
        }
        self.local.publish(notices);
    }

    fn subscribe(&self, key: &SessionKey) -> Box<dyn Subscription> {
        let held = self.interest.hold(Topic::Hints(event_part(key)));
        Box::new(Subscribed { inner: self.local.subscribe(key), _held: held })
    }

    fn tell(&self, key: &ConversationKey, news: News) {
        self.newsroom.send(key, &news);
        self.local.tell(key, news);
    }

    fn listen(&self, key: &ConversationKey) -> Box<dyn Listening> {
        let held = self.interest.hold(Topic::News(news_part(&key.namespace, &key.conversation_id)));
        Box::new(Listens { inner: self.local.listen(key), _held: held })
    }
}

struct Listens {
    inner: Box<dyn Listening>,
    /// Keeps the conversation's part bound.
    _held: Held,
}

#[async_trait]
impl Listening for Listens {
    async fn next(&mut self) -> Option<News> {
        self.inner.next().await
    }
}

struct Subscribed {
    inner: Box<dyn Subscription>,
    /// Keeps the session's part bound.
    _held: Held,
}

#[async_trait]
impl Subscription for Subscribed {
    async fn next(&mut self) -> Option<Notice> {
        self.inner.next().await
    }
}
