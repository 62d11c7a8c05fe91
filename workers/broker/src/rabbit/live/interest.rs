//! How many subscriptions there are of each part, and who is told of changes.

use std::collections::BTreeSet;
use std::sync::Arc;

use schemas::topology::EVENT_PARTS;
use tokio::sync::watch;

/// Subscriptions by part. Cheap to clone.
#[derive(Clone)]
pub(super) struct Interest(Arc<watch::Sender<Vec<usize>>>);

impl Default for Interest {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(vec![0; usize::from(EVENT_PARTS)])))
    }
}

impl Interest {
    /// Counts one more subscription for as long as the answer lives.
    pub fn hold(&self, part: u16) -> Held {
        self.0.send_modify(|counts| counts[usize::from(part)] += 1);
        Held { interest: self.clone(), part }
    }

    pub fn watch(&self) -> Watched {
        Watched(self.0.subscribe())
    }
}

pub(super) struct Held {
    interest: Interest,
    part: u16,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.interest.0.send_modify(|counts| counts[usize::from(self.part)] -= 1);
    }
}

/// The side that binds what is wanted.
pub(super) struct Watched(watch::Receiver<Vec<usize>>);

impl Watched {
    pub fn parts(&mut self) -> BTreeSet<u16> {
        let counts = self.0.borrow_and_update();
        (0..EVENT_PARTS).filter(|part| counts[usize::from(*part)] > 0).collect()
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
    async fn a_part_is_wanted_for_as_long_as_anybody_holds_it() {
        let interest = Interest::default();
        let mut watched = interest.watch();
        assert!(watched.parts().is_empty());
        let (one, two) = (interest.hold(3), interest.hold(3));
        assert!(watched.any().await);
        drop(one);
        assert_eq!(watched.parts(), BTreeSet::from([3]));
        drop(two);
        assert!(watched.changed().await);
        assert!(watched.parts().is_empty());
        drop(interest);
        assert!(!watched.changed().await && !watched.any().await);
    }
}
