//! Which lanes this process consumes, and where copies of their actions go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{mpsc, watch};

use super::super::acks::Held;
use super::early::Settled;

/// Copies that wait for their consumer; what does not fit is dropped.
const WAITING_MAX: usize = 64;

/// By the name of the lane's queue. Cheap to clone.
#[derive(Clone, Default)]
pub(in super::super) struct Lines {
    open: Arc<watch::Sender<BTreeMap<String, Open>>>,
    settled: Arc<Mutex<Settled>>,
}

struct Open {
    number: u64,
    copies: mpsc::Sender<Held>,
}

impl Lines {
    /// A line for as long as the answer lives. A newer one for the same lane takes its place.
    pub fn open(&self, queue: String) -> Line {
        let (copies, waiting) = mpsc::channel(WAITING_MAX);
        let mut number = 0;
        self.open.send_modify(|lines| {
            number = lines.get(&queue).map_or(0, |before| before.number + 1);
            lines.insert(queue.clone(), Open { number, copies });
        });
        Line { lines: self.clone(), queue, number, copies: waiting }
    }

    pub(super) fn watch(&self) -> Watched {
        Watched(self.open.subscribe())
    }
}

/// One consumer's end.
pub(in super::super) struct Line {
    lines: Lines,
    queue: String,
    number: u64,
    copies: mpsc::Receiver<Held>,
}

impl Line {
    /// The next copy; pends for ever once a newer line has taken the place of this one. Cancel safe.
    pub async fn next(&mut self) -> Held {
        match self.copies.recv().await {
            Some(copy) => copy,
            None => std::future::pending().await,
        }
    }

    /// What consumers of this process have acknowledged before it came by the queue.
    pub fn settled<T>(&self, look: impl FnOnce(&mut Settled) -> T) -> T {
        look(&mut self.lines.settled.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.lines.open.send_if_modified(|lines| {
            let is_own = lines.get(&self.queue).is_some_and(|line| line.number == self.number);
            if is_own {
                lines.remove(&self.queue);
            }
            is_own
        });
    }
}

/// The side that binds what is wanted, and hands over what comes.
pub(super) struct Watched(watch::Receiver<BTreeMap<String, Open>>);

impl Watched {
    pub fn queues(&mut self) -> BTreeSet<String> {
        self.0.borrow_and_update().keys().cloned().collect()
    }

    pub fn hand_over(&self, queue: &str, copy: Held) {
        if let Some(line) = self.0.borrow().get(queue) {
            // Full or gone: the message comes by the queue.
            let _ = line.copies.try_send(copy);
        }
    }

    /// Returns once any lane is consumed; `false` when the process ends. Cancel safe.
    pub async fn any(&mut self) -> bool {
        self.0.wait_for(|lines| !lines.is_empty()).await.is_ok()
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

    fn copy(body: &[u8]) -> Held {
        Held { properties: lapin::BasicProperties::default(), body: body.to_vec() }
    }

    #[tokio::test]
    async fn copies_go_to_the_newest_line_of_their_lane() {
        let lines = Lines::default();
        let mut watched = lines.watch();
        assert!(watched.queues().is_empty());
        let (old, mut other) = (lines.open("one".into()), lines.open("two".into()));
        let mut new = lines.open("one".into());
        assert!(watched.any().await);
        watched.hand_over("one", copy(b"1"));
        watched.hand_over("two", copy(b"2"));
        watched.hand_over("nobody", copy(b"3"));
        assert_eq!((new.next().await.body, other.next().await.body), (b"1".to_vec(), b"2".to_vec()));
        // The end of the old one takes nothing away from the new one.
        drop(old);
        assert_eq!(watched.queues(), BTreeSet::from(["one".into(), "two".into()]));
        drop((new, other));
        assert!(watched.queues().is_empty());
    }

    #[tokio::test]
    async fn a_slow_consumer_costs_its_own_copies() {
        let lines = Lines::default();
        let (mut line, watched) = (lines.open("one".into()), lines.watch());
        for n in 0..=u8::MAX {
            watched.hand_over("one", copy(&[n]));
        }
        for n in 0..WAITING_MAX as u8 {
            assert_eq!(line.next().await.body, [n]);
        }
    }
}
