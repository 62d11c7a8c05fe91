//! Calls of models that are streamed to nobody.

use std::sync::{Mutex, PoisonError};

use domain::chat::{ChatDelta, ProviderCallRecord};
use domain::ports::DeltaSink;

/// Is told what the call has used if it is cut short.
#[derive(Default)]
pub(super) struct Unheard(Mutex<Option<ProviderCallRecord>>);

impl Unheard {
    pub fn used(&self) -> Option<ProviderCallRecord> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl DeltaSink for Unheard {
    fn delta(&self, _attempt: u32, _index: u64, _delta: ChatDelta) {}

    fn retract(&self, _attempt: u32) {}

    fn wants_pieces(&self) -> bool {
        false
    }

    fn dropped(&self, record: ProviderCallRecord) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(record);
    }
}
