//! What clients sent, and what they were told.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::ports::Verdict;
use schemas::action::NewAction;
use schemas::problem::Code;
use testkit::dice::Dice;

#[derive(Debug, Clone)]
pub struct Sent {
    pub action: NewAction,
    pub told: Vec<Told>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    Accepted,
    Repeated,
    Refused(Code),
}

/// Cheap to clone; clones are one book.
#[derive(Clone, Default)]
pub struct Book(Arc<Mutex<Vec<Sent>>>);

impl Book {
    /// A distinct body is an entry of its own.
    pub fn sent(&self, action: &NewAction) {
        let mut entries = self.lock();
        if find(&mut entries, action).is_none() {
            entries.push(Sent { action: action.clone(), told: Vec::new() });
        }
    }

    pub fn told(&self, action: &NewAction, verdict: &Verdict) {
        let told = match verdict {
            Verdict::Accepted(_) => Told::Accepted,
            Verdict::Repeated(_) => Told::Repeated,
            Verdict::Refused(refusal) => Told::Refused(refusal.code),
        };
        if let Some(entry) = find(&mut self.lock(), action) {
            entry.told.push(told);
        }
    }

    pub fn any(&self, dice: &Dice) -> Option<Sent> {
        let entries = self.lock();
        (!entries.is_empty()).then(|| dice.pick(&entries).clone())
    }

    pub fn entries(&self) -> Vec<Sent> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Sent>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn find<'e>(entries: &'e mut [Sent], action: &NewAction) -> Option<&'e mut Sent> {
    entries.iter_mut().find(|entry| {
        entry.action.namespace == action.namespace
            && entry.action.action_id == action.action_id
            && entry.action.body_hash == action.body_hash
    })
}
