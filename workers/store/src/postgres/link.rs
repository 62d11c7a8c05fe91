//! Whether the database can be reached: told once when it goes, and once when it is back.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};

pub(super) struct Link {
    /// Where the database is, without any secret.
    place: String,
    is_down: AtomicBool,
}

impl Link {
    pub(super) fn new(place: String) -> Self {
        Self { place, is_down: AtomicBool::new(false) }
    }

    pub(super) fn is_up(&self) {
        // A plain load first: this is called after every statement.
        if self.is_down.load(Ordering::Relaxed) && self.is_down.swap(false, Ordering::Relaxed) {
            tracing::info!(database = %self.place, "the database is back");
        }
    }

    pub(super) fn is_down(&self, error: &dyn Display) {
        if !self.is_down.swap(true, Ordering::Relaxed) {
            tracing::warn!(database = %self.place, %error, "the database cannot be reached; trying on");
        }
    }
}
