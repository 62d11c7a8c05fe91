//! Live notices and news within one process, all of them kept for inspection.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use domain::ports::{ConversationKey, Listening, Live, News, Notice, Subscription};
use schemas::id::SessionKey;
use tokio::sync::broadcast;

const BUFFER: usize = 256;

#[derive(Clone)]
pub struct LocalLive {
    sender: broadcast::Sender<Notice>,
    published: Arc<Mutex<Vec<Notice>>>,
    news: broadcast::Sender<(ConversationKey, News)>,
    told: Arc<Mutex<Vec<(ConversationKey, News)>>>,
    objections: Arc<Mutex<Vec<String>>>,
    witness: Option<Witness>,
}

/// Looks at each notice at the moment it leaves; `Some` = why it must not.
pub type Witness = Arc<dyn Fn(&Notice) -> Option<String> + Send + Sync>;

impl Default for LocalLive {
    fn default() -> Self {
        Self {
            sender: broadcast::Sender::new(BUFFER),
            published: Arc::default(),
            news: broadcast::Sender::new(BUFFER),
            told: Arc::default(),
            objections: Arc::default(),
            witness: None,
        }
    }
}

impl LocalLive {
    pub fn with_witness(self, witness: Witness) -> Self {
        Self { witness: Some(witness), ..self }
    }

    /// What the witness had to say.
    pub fn objections(&self) -> Vec<String> {
        self.objections.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Every notice so far, in order.
    pub fn published(&self) -> Vec<Notice> {
        self.published.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl LocalLive {
    /// All news so far, in order.
    pub fn told(&self) -> Vec<(ConversationKey, News)> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Live for LocalLive {
    fn publish(&self, notices: Vec<Notice>) {
        for notice in notices {
            let objection = self.witness.as_ref().and_then(|witness| witness(&notice));
            self.objections.lock().unwrap_or_else(PoisonError::into_inner).extend(objection);
            self.published.lock().unwrap_or_else(PoisonError::into_inner).push(notice.clone());
            // No receiver is no error: a notice is a hint.
            let _ = self.sender.send(notice);
        }
    }

    fn subscribe(&self, key: &SessionKey) -> Box<dyn Subscription> {
        Box::new(LocalSubscription { key: key.clone(), receiver: self.sender.subscribe() })
    }

    fn tell(&self, key: &ConversationKey, news: News) {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).push((key.clone(), news.clone()));
        let _ = self.news.send((key.clone(), news));
    }

    fn listen(&self, key: &ConversationKey) -> Box<dyn Listening> {
        Box::new(LocalListening { key: key.clone(), receiver: self.news.subscribe() })
    }
}

struct LocalListening {
    key: ConversationKey,
    receiver: broadcast::Receiver<(ConversationKey, News)>,
}

#[async_trait]
impl Listening for LocalListening {
    async fn next(&mut self) -> Option<News> {
        loop {
            match self.receiver.recv().await {
                Ok((key, news)) if key == self.key => return Some(news),
                Ok(_) => {}
                Err(broadcast::error::RecvError::Lagged(_) | broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}

struct LocalSubscription {
    key: SessionKey,
    receiver: broadcast::Receiver<Notice>,
}

#[async_trait]
impl Subscription for LocalSubscription {
    async fn next(&mut self) -> Option<Notice> {
        loop {
            match self.receiver.recv().await {
                Ok(notice) if notice.key == self.key => return Some(notice),
                Ok(_) => {}
                Err(broadcast::error::RecvError::Lagged(_) | broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}
