//! The turn on a store that loses what the turn waits for, which no crash does. The auditor notices, and the turn
//! does not wait for ever.

use schemas::conversation::Turn;
use testkit::fake::{Breakage, Breakages};

use super::place::Place;
use super::{person, settled, work};
use crate::oracle::AUDITOR;

/// How the turn ended, and what the auditor sent.
#[derive(Debug)]
pub struct Outlived {
    pub turn: Turn,
    pub sent: Vec<String>,
}

/// Runs the turn while the store loses something; fails if it does not come to its end.
pub fn outlive(breakage: Breakage) -> Outlived {
    crate::run::runtime().block_on(async move {
        let breakages = Breakages::default();
        breakages.enable(breakage);
        let place = Place::with(&work::SCRIPT, breakages).await;
        let person = tokio::spawn(person::says_yes(place.clone()));
        let process = place.start("only", None);
        settled(&place.world, &format!("with {breakage:?}")).await;
        place.end(process);
        person.abort();
        let actions = place.world.store.all_actions().into_iter().filter(|one| one.asked.actor == AUDITOR);
        let sent = actions.map(|one| format!("{} {}", one.kind.as_str(), one.asked.payload.as_str())).collect();
        Outlived { turn: place.turn().await, sent }
    })
}
