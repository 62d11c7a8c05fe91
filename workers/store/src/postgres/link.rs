//! Whether the database can be reached: told when it goes and when it is back, but of a link that comes
//! and goes no more than a line now and then (`domain::outage`).

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use domain::outage::Outage;
use tokio::time::Instant;

pub(super) struct Link {
    /// Where the database is, without any secret.
    place: String,
    begun: Instant,
    outage: Mutex<Outage>,
    /// Whether an answer may be worth a line.
    may_tell: AtomicBool,
    /// How often it could not be reached, or a connection turned out to be broken.
    losses: AtomicU64,
}

impl Link {
    pub(super) fn new(place: String) -> Self {
        let (may_tell, losses) = (AtomicBool::new(false), AtomicU64::new(0));
        Self { place, begun: Instant::now(), outage: Mutex::default(), may_tell, losses }
    }

    pub(super) fn is_up(&self) {
        // A plain load first: this is called after every statement.
        if self.may_tell.load(Ordering::Relaxed)
            && let Some(left_out) = self.see(false)
        {
            tracing::info!(database = %self.place, left_out, "the database is back");
        }
    }

    /// Grows with each loss: a connection that has seen fewer may have broken meanwhile.
    pub(super) fn losses(&self) -> u64 {
        self.losses.load(Ordering::Relaxed)
    }

    /// A connection was lost, which says nothing yet of the database.
    pub(super) fn broke(&self) {
        self.losses.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn is_down(&self, error: &dyn Display) {
        self.broke();
        if let Some(left_out) = self.see(true) {
            tracing::warn!(database = %self.place, %error, left_out, "the database cannot be reached; trying on");
        }
    }

    /// `Some`: a line is due, after so many changes that none told.
    fn see(&self, is_away: bool) -> Option<u64> {
        let mut outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        let line = outage.see(is_away, self.begun.elapsed());
        // Under the lock, so that it is true of the last look.
        self.may_tell.store(!outage.is_over(), Ordering::Relaxed);
        line
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_link_that_flaps_says_so_now_and_then_and_its_end_is_told() {
        let link = Link::new("nowhere".to_owned());
        let mut lines = 0;
        // Down and up again, five times a second, for a minute.
        for n in 0..600 {
            lines += usize::from(link.see(n % 2 == 0).is_some());
            tokio::time::advance(Duration::from_millis(100)).await;
        }
        assert_eq!(lines, 6);
        tokio::time::advance(Duration::from_secs(10)).await;
        link.is_up();
        assert!(!link.may_tell.load(Ordering::Relaxed), "that it is back has been told");
    }
}
