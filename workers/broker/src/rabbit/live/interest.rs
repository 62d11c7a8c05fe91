//! How many subscriptions there are of each topic, and who is told of changes.

use std::collections::BTreeSet;
use std::sync::Arc;

use schemas::topology::{EVENT_PARTS, event_key, news_key};
use tokio::sync::watch;

/// What a gateway may be told of: one part of the hints or of the news.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Topic {
    Hints(u16),
    News(u16),
}

impl Topic {
    fn all() -> impl Iterator<Item = Self> {
        (0..EVENT_PARTS).map(Self::Hints).chain((0..EVENT_PARTS).map(Self::News))
    }

    /// Its place in the counts.
    fn index(self) -> usize {
        match self {
            Self::Hints(part) => usize::from(part),
            Self::News(part) => usize::from(EVENT_PARTS) + usize::from(part),
        }
    }

    pub fn routing_key(self) -> String {
        match self {
            Self::Hints(part) => event_key(part),
            Self::News(part) => news_key(part),
        }
    }
}

/// Subscriptions by topic. Cheap to clone.
#[derive(Clone)]
pub(super) struct Interest(Arc<watch::Sender<Vec<usize>>>);

impl Default for Interest {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(vec![0; 2 * usize::from(EVENT_PARTS)])))
    }
}

impl Interest {
    /// Counts one more subscription for as long as the answer lives.
    pub fn hold(&self, topic: Topic) -> Held {
        self.0.send_modify(|counts| counts[topic.index()] += 1);
        Held { interest: self.clone(), topic }
    }

    pub fn watch(&self) -> Watched {
        Watched(self.0.subscribe())
    }
}

pub(super) struct Held {
    interest: Interest,
    topic: Topic,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.interest.0.send_modify(|counts| counts[self.topic.index()] -= 1);
    }
}

/// The side that binds what is wanted.
pub(super) struct Watched(watch::Receiver<Vec<usize>>);

impl Watched {
    pub fn topics(&mut self) -> BTreeSet<Topic> {
        let counts = self.0.borrow_and_update();
        Topic::all().filter(|topic| counts[topic.index()] > 0).collect()
    }

    /// Returns once somebody subscribes to anything; `false` when the process ends. Cancel safe.
    pub async fn any(&mut self) -> bool {
        self.0.wait_for(|counts| counts.iter().any(|count| *count > 0)).await.is_ok()
    }

    /// Returns when the process ends. Cancel safe.
    pub async fn end(&mut self) {
        while self.changed().await {}
    }

    /// Returns at the next change; `false` when the process ends. Cancel safe.
    pub async fn changed(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_topic_is_wanted_for_as_long_as_anybody_holds_it() {
        let interest = Interest::default();
        let mut watched = interest.watch();
        assert!(watched.topics().is_empty());
        let (one, two) = (interest.hold(Topic::Hints(3)), interest.hold(Topic::Hints(3)));
        let news = interest.hold(Topic::News(EVENT_PARTS - 1));
        assert!(watched.any().await);
        drop(one);
        assert_eq!(watched.topics(), BTreeSet::from([Topic::Hints(3), Topic::News(EVENT_PARTS - 1)]));
        drop((two, news));
        assert!(watched.changed().await);
        assert!(watched.topics().is_empty());
        drop(interest);
        assert!(!watched.changed().await && !watched.any().await);
    }

    #[test]
    fn topics_have_places_and_keys_of_their_own() {
        let places: BTreeSet<usize> = Topic::all().map(Topic::index).collect();
        let keys: BTreeSet<String> = Topic::all().map(Topic::routing_key).collect();
        assert_eq!((places.len(), keys.len()), (2 * usize::from(EVENT_PARTS), 2 * usize::from(EVENT_PARTS)));
        assert_eq!(places.last(), Some(&(2 * usize::from(EVENT_PARTS) - 1)));
    }
}
