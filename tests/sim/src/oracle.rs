//! The oracle: reads what the world has in the end, and says which invariants do not hold.

mod actions;
mod causes;
mod content;
mod control;
mod effects;
mod history;
mod order;
mod ownership;
mod paying;
mod saying;
mod steps;
mod story;

use domain::invariant::{Broken, Invariant};

use crate::clients::Book;
use crate::world::World;
pub use causes::AUDITOR;
pub use saying::said;
pub use story::{Stories, Story};

/// A broken invariant with its evidence.
pub type Finding = Broken;

/// Collects findings.
#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn expect(&mut self, invariant: Invariant, holds: bool, evidence: impl FnOnce() -> String) {
        if let Err(broken) = domain::invariant::check(invariant, holds, evidence) {
            self.0.push(broken);
        }
    }
}

pub fn check(world: &World, book: &Book) -> Vec<Finding> {
    let mut findings = Findings::default();
    let stories = Stories::of(world);
    ownership::check(world, &mut findings);
    actions::check(world, book, &mut findings);
    order::check(&stories, &mut findings);
    steps::check(&stories, &mut findings);
    content::check(&stories, &mut findings);
    saying::check(world, &stories, &mut findings);
    control::check(&stories, &mut findings);
    paying::check(&stories, &mut findings);
    history::check(world, &stories, &mut findings);
    effects::check(world, &mut findings);
    causes::check(world, &mut findings);
    findings.0
}
