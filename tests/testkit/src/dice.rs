//! One seeded source of chance. Every random choice of a simulation comes from here, so a seed
//! reproduces a run.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Cheap to clone; clones share one sequence. Use [`Dice::fork`] for an independent one.
#[derive(Clone)]
pub struct Dice(Arc<Mutex<StdRng>>);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(StdRng::seed_from_u64(seed))))
    }

    /// A sequence of its own, so that draws elsewhere do not shift this one.
    pub fn fork(&self) -> Self {
        let seed = self.lock().random();
        Self::new(seed)
    }

    /// True with the given probability.
    pub fn chance(&self, probability: f64) -> bool {
        probability > 0.0 && self.lock().random_bool(probability.min(1.0))
    }

    /// A number of the range, which must not be empty.
    pub fn range(&self, range: Range<u64>) -> u64 {
        self.lock().random_range(range)
    }

    /// An index below `len`, which must not be zero.
    pub fn index(&self, len: usize) -> usize {
        self.lock().random_range(0..len)
    }

    pub fn pick<'a, T>(&self, items: &'a [T]) -> &'a T {
        &items[self.index(items.len())]
    }

    fn lock(&self) -> MutexGuard<'_, StdRng> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
