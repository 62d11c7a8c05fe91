//! The turn on a store that loses what the turn waits for, which no crash does. The auditor notices, and the turn
//! does not wait for ever.

use domain::ports::Conversations;
use schemas::conversation::Turn;
use schemas::id::Namespace;
use testkit::contract::words::turn_id;
use testkit::fake::{Breakage, Breakages};

use super::place::Place;
use super::script::TURN;
use super::{person, settled};
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
        let place = Place::with(breakages).await;
        let person = tokio::spawn(person::say_yes(place.world.clone()));
        let process = place.start("only", None);
        settled(&place.world, &format!("with {breakage:?}")).await;
        place.end(process);
        person.abort();
        let store = &place.world.store;
        let found = store.turn(&Namespace::default_ns(), &turn_id(TURN)).await.expect("no faults are scripted");
        let actions = store.all_actions().into_iter().filter(|one| one.asked.actor == AUDITOR);
        let sent = actions.map(|one| format!("{} {}", one.kind.as_str(), one.asked.payload.as_str())).collect();
        Outlived { turn: found.expect("it began"), sent }
    })
}
