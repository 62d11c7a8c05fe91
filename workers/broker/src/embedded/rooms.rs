//! Broadcasts by key within one process: a channel for each key that somebody listens to.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::broadcast;

type Watched<K, V> = Arc<Mutex<HashMap<K, broadcast::Sender<V>>>>;

/// Cheap to clone; clones share their listeners.
pub(super) struct Rooms<K, V> {
    watched: Watched<K, V>,
    /// Kept for a slow listener; one that lags more is told so.
    kept: usize,
}

impl<K, V> Clone for Rooms<K, V> {
    fn clone(&self) -> Self {
        Self { watched: self.watched.clone(), kept: self.kept }
    }
}

fn lock<K, V>(watched: &Watched<K, V>) -> MutexGuard<'_, HashMap<K, broadcast::Sender<V>>> {
    watched.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<K: Eq + Hash + Clone, V: Clone> Rooms<K, V> {
    pub fn new(kept: usize) -> Self {
        Self { watched: Arc::default(), kept }
    }

    /// Tells whoever listens; nobody is no error. Never blocks.
    pub fn tell<'k>(&self, all: impl IntoIterator<Item = (&'k K, V)>)
    where
        K: 'k,
    {
        let watched = lock(&self.watched);
        if watched.is_empty() {
            return;
        }
        for (key, value) in all {
            if let Some(room) = watched.get(key) {
                // No receiver is left: the listener's drop removes the channel in a moment.
                let _ = room.send(value);
            }
        }
    }

    pub fn enter(&self, key: &K) -> Listener<K, V> {
        let mut watched = lock(&self.watched);
        let room = watched.entry(key.clone()).or_insert_with(|| broadcast::channel(self.kept).0);
        Listener { receiver: Some(room.subscribe()), key: key.clone(), watched: self.watched.clone() }
    }

    /// Ends the listening to the chosen keys: something may have been lost.
    pub fn interrupt(&self, chosen: impl Fn(&K) -> bool) {
        lock(&self.watched).retain(|key, _| !chosen(key));
    }
}

pub(super) struct Listener<K: Eq + Hash, V> {
    receiver: Option<broadcast::Receiver<V>>,
    key: K,
    watched: Watched<K, V>,
}

impl<K: Eq + Hash, V: Clone> Listener<K, V> {
    /// `None`: something was lost, or it was interrupted. Cancel safe.
    pub async fn next(&mut self) -> Option<V> {
        let heard = self.receiver.as_mut()?.recv().await.ok();
        if heard.is_none() {
            // What comes after a gap is not for a listener that was told of the gap.
            self.receiver = None;
        }
        heard
    }
}

impl<K: Eq + Hash, V> Drop for Listener<K, V> {
    fn drop(&mut self) {
        self.receiver = None;
        let mut watched = lock(&self.watched);
        if watched.get(&self.key).is_some_and(|room| room.receiver_count() == 0) {
            watched.remove(&self.key);
        }
    }
}
