//! Live notices within one process: one broadcast channel per session that somebody watches.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use domain::ports::{Live, Notice, Subscription};
use schemas::id::SessionKey;
use tokio::sync::broadcast;

/// Notices kept for a slow subscriber; one that lags more reads the journal.
const NOTICES_MAX: usize = 64;

/// Cheap to clone; clones share their subscribers.
#[derive(Clone, Default)]
pub struct EmbeddedLive {
    watched: Arc<Mutex<HashMap<SessionKey, broadcast::Sender<Notice>>>>,
}

impl EmbeddedLive {
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the subscriptions of the chosen sessions: their notices may have been lost.
    pub(crate) fn interrupt(&self, chosen: impl Fn(&SessionKey) -> bool) {
        self.watched.lock().expect("no holder panics").retain(|key, _| !chosen(key));
    }
}

impl Live for EmbeddedLive {
    fn publish(&self, notices: Vec<Notice>) {
        let watched = self.watched.lock().expect("no holder panics");
        if watched.is_empty() {
            return;
        }
        for notice in notices {
            if let Some(tx) = watched.get(&notice.key) {
                // No receiver is left: the subscription's drop removes the channel in a moment.
                let _ = tx.send(notice);
            }
        }
    }

    fn subscribe(&self, key: &SessionKey) -> Box<dyn Subscription> {
        let mut watched = self.watched.lock().expect("no holder panics");
        let tx = watched.entry(key.clone()).or_insert_with(|| broadcast::channel(NOTICES_MAX).0);
        Box::new(EmbeddedSubscription { rx: Some(tx.subscribe()), key: key.clone(), watched: self.watched.clone() })
    }
}

struct EmbeddedSubscription {
    rx: Option<broadcast::Receiver<Notice>>,
    key: SessionKey,
    watched: Arc<Mutex<HashMap<SessionKey, broadcast::Sender<Notice>>>>,
}

#[async_trait]
impl Subscription for EmbeddedSubscription {
    async fn next(&mut self) -> Option<Notice> {
        // Lagged or closed: either way the subscriber must read the journal.
        self.rx.as_mut()?.recv().await.ok()
    }
}

impl Drop for EmbeddedSubscription {
    fn drop(&mut self) {
        self.rx = None;
        let mut watched = self.watched.lock().expect("no holder panics");
        if watched.get(&self.key).is_some_and(|tx| tx.receiver_count() == 0) {
            watched.remove(&self.key);
        }
    }
}
