//! Dead letters in memory.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use domain::failure::Failure;
use domain::ports::{DeadLetter, DeadLetters, Deed, Sweep, Swept, Told};

/// Cheap to clone; clones hold the same letters.
#[derive(Clone, Default)]
pub struct MemDeadLetters(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    letters: Vec<DeadLetter>,
    redriven: Vec<DeadLetter>,
    /// Letters that a sweep still comes to before it fails.
    good_for: Option<usize>,
}

impl MemDeadLetters {
    pub fn put(&self, letter: DeadLetter) {
        self.kept().letters.push(letter);
    }

    /// What was sent back to its origin.
    pub fn redriven(&self) -> Vec<DeadLetter> {
        self.kept().redriven.clone()
    }

    /// The broker goes away once a sweep has come to so many letters.
    pub fn fail_after(&self, letters: usize) {
        self.kept().good_for = Some(letters);
    }

    fn take(&self, id: &str) -> Option<DeadLetter> {
        let mut kept = self.kept();
        let place = kept.letters.iter().position(|letter| letter.id == id)?;
        Some(kept.letters.remove(place))
    }

    fn check_up(&self) -> Result<(), Failure> {
        match &mut self.kept().good_for {
            Some(0) => Err(Failure::unavailable("the broker is away")),
            Some(letters) => {
                *letters -= 1;
                Ok(())
            }
            None => Ok(()),
        }
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

    /// A second for each letter.
    async fn sweep(&self, sweep: Sweep, told: Told) -> Result<Swept, Failure> {
        let mut swept = Swept::default();
        for letter in self.list(usize::MAX).await? {
            self.check_up()?;
            match (sweep.means(&letter), sweep.deed) {
                (false, _) => swept.kept += 1,
                (true, Deed::Redrive) => swept.done += u64::from(self.redrive(&letter.id).await?),
                (true, Deed::Discard) => swept.done += u64::from(self.discard(&letter.id).await?),
            }
            told(swept);
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        }
        Ok(swept)
    }
}
