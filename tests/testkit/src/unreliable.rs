//! Seeded faults around any port, as one process suffers them: a call is performed or not, and
//! reported or not, and late. A process that has crashed is never answered again.

mod effects;
mod fate;
mod leases;
mod queue;
mod store;
mod talk;
mod trace;

use std::sync::Arc;

pub use fate::{CrashPoint, FaultRates, Faults, Port, Side};
pub use trace::Trace;

/// A port as one process sees it through its faults.
pub struct Unreliable<P: ?Sized> {
    inner: Arc<P>,
    faults: Faults,
}

impl<P: ?Sized> Unreliable<P> {
    pub fn new(inner: Arc<P>, faults: Faults) -> Self {
        Self { inner, faults }
    }
}
