//! Dead letters in memory.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use domain::failure::Failure;
use domain::ports::{DeadLetter, DeadLetters};

/// Cheap to clone; clones hold the same letters.
#[derive(Clone, Default)]
pub struct MemDeadLetters(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    letters: Vec<DeadLetter>,
    redriven: Vec<DeadLetter>,
}

impl MemDeadLetters {
    pub fn put(&self, letter: DeadLetter) {
        self.kept().letters.push(letter);
    }

    /// What was sent back to its origin.
    pub fn redriven(&self) -> Vec<DeadLetter> {
        self.kept().redriven.clone()
    }

    fn take(&self, id: &str) -> Option<DeadLetter> {
        let mut kept = self.kept();
        let place = kept.letters.iter().position(|letter| letter.id == id)?;
        Some(kept.letters.remove(place))
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl DeadLetters for MemDeadLetters {
    async fn list(&self, limit: usize) -> Result<Vec<DeadLetter>, Failure> {
        Ok(self.kept().letters.iter().take(limit).cloned().collect())
    }

    async fn get(&self, id: &str) -> Result<Option<DeadLetter>, Failure> {
        Ok(self.kept().letters.iter().find(|letter| letter.id == id).cloned())
    }

    async fn redrive(&self, id: &str) -> Result<bool, Failure> {
        let Some(letter) = self.take(id) else { return Ok(false) };
        self.kept().redriven.push(letter);
        Ok(true)
    }

    async fn discard(&self, id: &str) -> Result<bool, Failure> {
        Ok(self.take(id).is_some())
    }
}
