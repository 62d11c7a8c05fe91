//! What is wrong at present, so that each trouble is logged when it begins and when it ends.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::failure::Failure;

/// Cheap to clone; clones share what they know. One entry per queue at most.
#[derive(Clone, Default)]
pub(super) struct Troubles(Arc<Mutex<HashMap<String, String>>>);

impl Troubles {
    /// Logs a trouble that is new.
    pub fn note(&self, place: &str, failure: &Failure) {
        let before = self.lock().insert(place.to_owned(), failure.message.clone());
        if before.as_deref() == Some(failure.message.as_str()) {
            return;
        }
        if failure.retriable {
            tracing::warn!(place, reason = failure.message, "trouble with the broker; trying again");
        } else {
            tracing::error!(place, reason = failure.message, "trouble with the broker that a person must mend");
        }
    }

    pub fn clear(&self, place: &str) {
        if self.lock().remove(place).is_some() {
            tracing::info!(place, "the trouble with the broker is over");
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
