//! Who seems to have no cause. A finding counts once two passes in a row made it of the same thing as it stood:
//! what is read for it is not read in one transaction.

use std::collections::{BTreeMap, BTreeSet};

use schemas::id::{Namespace, OperationId, SessionKey, TurnId};

/// Suspects kept from one pass to the next; more are found once these are healed.
const SUSPECTS_MAX: usize = 10_000;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Subject {
    Session(SessionKey),
    Turn(Namespace, TurnId),
    Operation(Namespace, OperationId),
}

/// How often it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    First,
    /// It counts from now on.
    Second,
    /// The log has it already.
    Again,
}

/// What one pass has found.
#[derive(Debug, Default)]
pub(super) struct Suspects {
    /// With the place at which each one stood, and whether it counted.
    found: BTreeMap<Subject, (u64, bool)>,
    /// Whose causes are missing for sure.
    without_cause: BTreeSet<SessionKey>,
}

impl Suspects {
    pub fn without_cause(&self) -> usize {
        self.without_cause.len()
    }

    /// Notes that something of `key` seems to have no cause, at its `place`.
    pub fn note(&mut self, before: &Self, key: &SessionKey, subject: Subject, place: u64) -> Seen {
        let seen = match before.found.get(&subject) {
            Some(&(known, true)) if known == place => Seen::Again,
            Some(&(known, false)) if known == place => Seen::Second,
            _ => Seen::First,
        };
        if seen != Seen::First && self.without_cause.len() < SUSPECTS_MAX {
            self.without_cause.insert(key.clone());
        }
        if self.found.len() < SUSPECTS_MAX {
            self.found.insert(subject, (place, seen != Seen::First));
        }
        seen
    }
}

#[cfg(test)]
mod tests {
    use schemas::id::SessionId;

    use super::*;

    #[test]
    fn a_finding_counts_when_it_is_made_again_of_the_same() {
        let key = SessionKey::new(Namespace::default_ns(), SessionId::parse("s1").unwrap());
        let subject = || Subject::Session(key.clone());
        let mut passes = vec![Suspects::default()];
        for (place, seen, counted) in
            [(1, Seen::First, 0), (1, Seen::Second, 1), (1, Seen::Again, 1), (2, Seen::First, 0), (2, Seen::Second, 1)]
        {
            let mut pass = Suspects::default();
            assert_eq!(pass.note(&passes[passes.len() - 1], &key, subject(), place), seen);
            assert_eq!(pass.without_cause(), counted);
            passes.push(pass);
        }
        let turn = Subject::Turn(Namespace::default_ns(), TurnId::parse("t1").unwrap());
        assert_eq!(Suspects::default().note(&passes[1], &key, turn, 1), Seen::First, "it is somebody else");
    }
}
