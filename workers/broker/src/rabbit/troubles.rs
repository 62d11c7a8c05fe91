//! What is wrong at present, so that each trouble is logged when it begins and when it ends.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use domain::failure::Failure;
use domain::outage::Seldom;

/// Queues have their trouble together, when the broker has it.
static TOLD: LazyLock<(Instant, Mutex<Seldom>)> = LazyLock::new(|| (Instant::now(), Mutex::default()));

/// Cheap to clone; clones share what they know.
#[derive(Clone, Default)]
pub(super) struct Troubles(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    /// One entry per queue at most: whether a person must mend it.
    places: HashMap<String, bool>,
    /// Whether the log has a line that none of their end has followed.
    is_told: bool,
}

impl Troubles {
    /// Logs a trouble that is new.
    pub fn note(&self, place: &str, failure: &Failure) {
        if !self.is_news(place, failure) {
            return;
        }
        if !failure.retriable {
            self.lock().is_told = true;
            tracing::error!(place, reason = failure.message, "trouble with the broker that a person must mend");
            return;
        }
        let (begun, told) = &*TOLD;
        let line = told.lock().unwrap_or_else(PoisonError::into_inner).see(begun.elapsed());
        match line {
            Some(left_out) => {
                self.lock().is_told = true;
                tracing::warn!(place, reason = failure.message, left_out, "trouble with the broker; trying again");
            }
            None => tracing::debug!(place, reason = failure.message, "trouble with the broker; trying again"),
        }
    }

    /// Another text is no other trouble; that a person must mend it is news, once.
    fn is_news(&self, place: &str, failure: &Failure) -> bool {
        let must_mend = !failure.retriable;
        match self.lock().places.entry(place.to_owned()) {
            Entry::Vacant(new) => {
                new.insert(must_mend);
                true
            }
            Entry::Occupied(mut known) => must_mend && !std::mem::replace(known.get_mut(), true),
        }
    }

    pub fn clear(&self, place: &str) {
        let Some(is_last) = self.end(place) else { return };
        match is_last {
            true => tracing::info!("the trouble with the broker is over"),
            false => tracing::debug!(place, "a trouble with the broker is over"),
        }
    }

    /// `Some`: there was one, and whether the log is to say that all of it is over.
    fn end(&self, place: &str) -> Option<bool> {
        let mut known = self.lock();
        known.places.remove(place)?;
        Some(known.places.is_empty() && std::mem::take(&mut known.is_told))
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_text_is_no_other_trouble() {
        let troubles = Troubles::default();
        let lines = |place: &str, failure: fn(String) -> Failure| {
            (0..20).filter(|n| troubles.is_news(place, &failure(format!("error {n}")))).count()
        };
        assert_eq!((lines("one", Failure::unavailable), lines("two", Failure::unavailable)), (1, 1));
        assert_eq!(lines("one", Failure::internal), 1, "that a person must mend it is news, once");
        assert_eq!(lines("one", Failure::unavailable), 0);
        troubles.clear("one");
        assert_eq!((lines("one", Failure::unavailable), lines("two", Failure::unavailable)), (1, 0));
    }

    #[test]
    fn that_all_is_well_again_is_told_once_and_only_if_the_trouble_was() {
        let troubles = Troubles::default();
        for place in ["one", "two"] {
            assert!(troubles.is_news(place, &Failure::unavailable("away")));
        }
        troubles.lock().is_told = true;
        assert_eq!(["one", "one", "two"].map(|place| troubles.end(place)), [Some(false), None, Some(true)]);
        assert!(troubles.is_news("one", &Failure::unavailable("away")));
        assert_eq!(troubles.end("one"), Some(false));
    }
}
