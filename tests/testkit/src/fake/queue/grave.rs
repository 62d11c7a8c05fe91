//! The dead letters of the fake broker.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::ports::{Content, DeadLetter};

use super::lane::Message;

/// Cheap to clone; clones hold the same letters.
#[derive(Clone, Default)]
pub struct Grave(Arc<Mutex<Buried>>);

#[derive(Default)]
struct Buried {
    letters: Vec<(DeadLetter, Content)>,
    counter: u64,
}

impl Grave {
    pub fn bury(&self, origin: &str, message: &Message, reason: &str) {
        let mut buried = self.lock();
        buried.counter += 1;
        let letter = DeadLetter {
            id: format!("letter-{}", buried.counter),
            reason: reason.to_owned(),
            origin: origin.to_owned(),
            body: match &message.content {
                Content::Action(action) => serde_json::to_vec(action).unwrap_or_default(),
                Content::Foreign(foreign) => foreign.body.clone(),
            },
            at_ms: buried.counter as i64,
            headers: Vec::new(),
        };
        buried.letters.push((letter, message.content.clone()));
    }

    pub fn letters(&self) -> Vec<DeadLetter> {
        self.lock().letters.iter().map(|(letter, _)| letter.clone()).collect()
    }

    /// Takes a letter out: its origin, and what it was.
    pub fn dig_up(&self, id: &str) -> Option<(String, Content)> {
        let mut buried = self.lock();
        let place = buried.letters.iter().position(|(letter, _)| letter.id == id)?;
        let (letter, content) = buried.letters.remove(place);
        Some((letter.origin, content))
    }

    fn lock(&self) -> MutexGuard<'_, Buried> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
